#include "program.h"

int main(int argc, char** argv) {
    return mcastcoll::sim::run_program(argc, argv);
}
