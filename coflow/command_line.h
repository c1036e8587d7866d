#pragma once

#include <string>

/// The command line of a program whose flags are gflags: what gflags leaves to be desired for people.
namespace weir {

/// Parses the flags and takes them out of `argv`. For --help, prints `usage` and the flags that `main_file` (__FILE__
/// of the caller) defines, without those of libraries, and exits 0; for --version, exits 0. What is no flag, or no
/// value for one, is said on standard error, and exits 2. To be called once, first thing in main.
void ParseCommandLine(const std::string& usage, const char* main_file, int* argc, char*** argv);

}  // namespace weir
