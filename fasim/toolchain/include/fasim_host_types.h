// Classes of the host's standard library without their functions, in the sizes of a 64-bit libstdc++: enough for signatures, aliases and
// members of classes that host and device share. Device code that uses one does not compile, as under nvcc.
#pragma once

#define FASIM_HOST_TYPE(NAME, SELF, ...)                                                                                                   \
    class NAME {                                                                                                                           \
        __VA_ARGS__;                                                                                                                       \
                                                                                                                                           \
    public:                                                                                                                                \
        __host__ __device__ SELF();                                                                                                        \
        __host__ __device__ SELF(const SELF&);                                                                                             \
        __host__ __device__ ~SELF();                                                                                                       \
    };

namespace std {
template <class T> class allocator;
template <class T> struct char_traits;
template <class T> struct default_delete;
template <class T, class A = allocator<T>> FASIM_HOST_TYPE(vector, vector, void* words_[3])
template <class T, class A = allocator<T>> FASIM_HOST_TYPE(list, list, void* words_[3])
template <class T, class A = allocator<T>> FASIM_HOST_TYPE(deque, deque, void* words_[10])
template <class T, class C = deque<T>> FASIM_HOST_TYPE(queue, queue, C container_)
template <class T, class C = deque<T>> FASIM_HOST_TYPE(stack, stack, C container_)
template <class K, class C = void, class A = allocator<K>> FASIM_HOST_TYPE(set, set, void* words_[6])
template <class K, class H = void, class E = void, class A = allocator<K>> FASIM_HOST_TYPE(unordered_set, unordered_set, void* words_[7])
template <class K, class V, class C = void, class A = allocator<K>> FASIM_HOST_TYPE(map, map, void* words_[6])
template <class K, class V, class H = void, class E = void, class A = allocator<K>>
FASIM_HOST_TYPE(unordered_map, unordered_map, void* words_[7])
template <class C, class T = char_traits<C>, class A = allocator<C>> FASIM_HOST_TYPE(basic_string, basic_string, void* words_[4])
template <class T, class D = default_delete<T>> FASIM_HOST_TYPE(unique_ptr, unique_ptr, void* words_[1])
template <class T> FASIM_HOST_TYPE(shared_ptr, shared_ptr, void* words_[2])
template <class T> FASIM_HOST_TYPE(function, function, void* words_[4])
FASIM_HOST_TYPE(mutex, mutex, void* words_[5])
FASIM_HOST_TYPE(thread, thread, void* words_[1])
typedef basic_string<char> string;
template <class C, class T = char_traits<C>> class basic_ostream;
template <class C, class T = char_traits<C>> class basic_istream;
typedef basic_ostream<char> ostream;
typedef basic_istream<char> istream;
class exception;
class runtime_error;
}

#undef FASIM_HOST_TYPE
