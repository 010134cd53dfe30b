#pragma once
#include <nanobind/nanobind.h>

namespace dc2 {

// Adds to the module what makes graphs and finds their communities.
void define_graphs(nanobind::module_& module);

}  // namespace dc2
