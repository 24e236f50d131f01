# Accepts a compiler with C++20, and adds the flag it needs.
AC_DEFUN([AX_MCC_CXX20], [
  AC_MSG_CHECKING([for the C++20 flag of $CXX])
  mcc_cxx20=no
  for flag in -std=c++20 -std=c++2a; do
    saved=$CXXFLAGS; CXXFLAGS="$CXXFLAGS $flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <compare>
#include <span>
#include <concepts>]], [[std::span<const int> s; return int(s.size()) + (1 <=> 2 < 0);]])], [mcc_cxx20=$flag])
    CXXFLAGS=$saved
    test "$mcc_cxx20" = no || break
  done
  AC_MSG_RESULT([$mcc_cxx20])
  AS_IF([test "$mcc_cxx20" = no], [AC_MSG_ERROR([mcastcoll needs a C++20 compiler, such as g++ 12])])
  CXX="$CXX $mcc_cxx20"
])
