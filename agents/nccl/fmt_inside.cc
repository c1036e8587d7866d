// {fmt} itself: as headers only, each file that formats anything would take five times as long to compile.
#include <fmt/format-inl.h>

// Its headers say that these are somewhere.
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl(fmt::detail::locale_ref);
template char fmt::detail::decimal_point_impl(fmt::detail::locale_ref);
