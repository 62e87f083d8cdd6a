"""`fasim check`: exit codes, the report, JSON and SARIF."""

from __future__ import annotations

import json

import pytest

from fasim.report.check import CheckReport, Finding, Place

RACES = """
extern "C" __global__ void reversed(const int* in, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void ordered(const int* in, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void half(const int* in, int* out) {
  __shared__ int s[64];
  if (threadIdx.x < 32) s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void stuck(const int* in, int* out) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
  else asm volatile("bar.sync 2, 64;");
  out[threadIdx.x] = in[threadIdx.x];
}
extern "C" __global__ void both(const int* in, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = s[63 - threadIdx.x];
  __syncthreads();
  out[threadIdx.x + 32] = 0;
}
extern "C" __global__ void outside(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x + 32]; }
"""
ARGS = ["--grid", "1", "--block", "64", "--arg", "in=i32[64]:arange", "--arg", "out=i32[64]:zeros"]


def words(entry):
    return ["check", "races.cu", "--entry", entry, *ARGS]


@pytest.fixture
def check(fasim_command, tmp_path):
    (tmp_path / "races.cu").write_text(RACES)
    return fasim_command


def test_a_race(check):
    done = check(*words("reversed"))
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("error: race: ") and done.out.endswith("reversed: 1 error\n")
    for line in (
        "  -->",
        "  >    4 |   s[threadIdx.x] = in[threadIdx.x];",
        "  >    5 |   out[threadIdx.x] = s[63 - threadIdx.x];",
        "64 words of shared memory at byte 0-255",
        "put __syncthreads() between",
    ):
        assert line in done.out


def test_clean(check):
    done = check(*words("ordered"))
    assert (done.code, done.out, done.err) == (0, "ordered: no hazards\n", "")


def test_some_of_the_checks(check):
    assert check(*words("reversed"), "--only", "init,sync").out.endswith("(checked: init,sync)\n")
    assert check(*words("half"), "--only", "race").code == 0
    assert check(*words("half"), "--only", "init").code == 1
    wrong = check(*words("half"), "--only", "races")
    assert (wrong.code, wrong.out) == (2, "") and "race, init, sync" in wrong.err


def test_json(check):
    done = check(*words("reversed"), "--json")
    record = done.record
    assert done.code == record["exit_code"] == 1
    assert set(record) == set(CheckReport.__dataclass_fields__) and record["schema"] == "fasim.check/1"
    assert (record["kernel"], record["source"], record["verdict"], record["error"]) == ("reversed", "races.cu", "findings", "")
    (finding,) = record["findings"]
    assert set(finding) == set(Finding.__dataclass_fields__)
    assert (finding["space"], finding["scope"], finding["words"], finding["severity"]) == ("shared", "inter-warp", 64, "error")
    assert sorted(place["line"] for place in finding["places"]) == [4, 5]
    assert set(finding["places"][0]) == set(Place.__dataclass_fields__)
    clean = check(*words("ordered"), "--json")
    assert (clean.code, clean.record["verdict"], clean.record["findings"]) == (0, "clean", [])


@pytest.mark.parametrize(
    ("entry", "rule", "lines"),
    [("reversed", "RAW", [4, 5]), ("half", "uninit_shared", [17]), ("stuck", "deadlock", [20, 21]), ("outside", "oob_global", [31])],
)
def test_sarif(check, tmp_path, entry, rule, lines):
    done = check(*words(entry), "--sarif", "out.sarif")
    assert done.code == 1
    (run,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    (result,) = run["results"]
    assert result["ruleId"] in (rule, rule.replace("RAW", "WAR"))
    places = result.get("relatedLocations", result["locations"])
    assert {place["physicalLocation"]["region"]["startLine"] for place in places} == set(lines)
    assert {place["physicalLocation"]["artifactLocation"]["uri"] for place in places} == {"races.cu"}


def test_a_clean_run_writes_sarif_too(check, tmp_path):
    assert check(*words("ordered"), "--sarif", "out.sarif").code == 0
    assert json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"] == []


def test_errors_that_end_the_run(check):
    done = check(*words("outside"))
    assert (done.code, done.err) == (1, "")
    assert "error: global access out of bounds" in done.out and "outside: 1 error, the run did not come to its end" in done.out
    record = check(*words("stuck"), "--json").record
    assert (record["error"], record["exit_code"]) == ("DeadlockError", 1)
    assert [place["role"] for place in record["findings"][0]["places"]] == ["waits for barrier 1", "waits for barrier 2"]


def test_what_was_found_before_the_error_is_kept(check, tmp_path):
    done = check(*words("both"), "--sarif", "out.sarif")
    assert done.code == 1 and done.out.endswith("both: 2 errors, the run did not come to its end\n")
    (run,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    assert [result["ruleId"] for result in run["results"]][1] == "oob_global" and len(run["results"]) == 2


def test_memory_that_nobody_wrote(check, tmp_path):
    (tmp_path / "copy.cu").write_text("__global__ void copy(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }\n")
    launch = ["check", "copy.cu", "--grid", "1", "--block", "32", "--arg", "out=i32[32]:zeros"]
    assert check(*launch[:-2], "--arg", "in=i32[32]:uninit", *launch[-2:]).code == 1
    assert check(*launch[:-2], "--arg", "in=i32[32]:arange", *launch[-2:]).code == 0


def test_kernels_of_the_collection(check):
    done = check("check", "transpose")
    assert (done.code, done.out) == (0, "transpose: no hazards\n")
    assert check("check", "fa_v21", "--n", "128", "--heads", "1", "--layout", "swizzled").out == "fa_v21: no hazards\n"


def test_output_of_the_kernel_comes_first(check, tmp_path):
    (tmp_path / "talk.cu").write_text('#include <cstdio>\n__global__ void talk() { if (threadIdx.x == 0) printf("hello"); }\n')
    done = check("check", "talk.cu", "--grid", "1", "--block", "32")
    assert (done.code, done.out) == (0, "hello\ntalk: no hazards\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--sarif", "no/where.sarif"], "there is no directory 'no'"),
        (["--sarif", "."], "this is a directory"),
        (["--rtol", "1"], "fasim check looks for hazards and does not judge outputs; leave out --rtol"),
    ],
)
def test_wrong_use(check, given, message):
    done = check(*words("ordered"), *given)
    assert (done.code, done.out) == (2, "") and message in done.err


def test_what_is_missing_is_said(check):
    done = check("check", "races.cu", "--entry", "ordered")
    assert done.code == 2 and "fasim check races.cu" in done.err
    assert check("check", "--help").out.count("--sarif") == 1
