// Names of the host's standard library, declared and never defined: enough for the signatures and aliases of host code.
#pragma once

namespace std {
template <class T> class allocator;
template <class T, class A = allocator<T>> class vector;
template <class T, class A = allocator<T>> class list;
template <class T, class A = allocator<T>> class deque;
template <class T, class C = deque<T>> class queue;
template <class T, class C = deque<T>> class stack;
template <class K, class C = void, class A = allocator<K>> class set;
template <class K, class H = void, class E = void, class A = allocator<K>> class unordered_set;
template <class K, class V, class C = void, class A = allocator<K>> class map;
template <class K, class V, class H = void, class E = void, class A = allocator<K>> class unordered_map;
template <class T> struct char_traits;
template <class C, class T = char_traits<C>, class A = allocator<C>> class basic_string;
typedef basic_string<char> string;
template <class C, class T = char_traits<C>> class basic_ostream;
template <class C, class T = char_traits<C>> class basic_istream;
typedef basic_ostream<char> ostream;
typedef basic_istream<char> istream;
template <class T> struct default_delete;
template <class T, class D = default_delete<T>> class unique_ptr;
template <class T> class shared_ptr;
template <class T> class function;
class mutex;
class thread;
class exception;
class runtime_error;
class mt19937;
}
