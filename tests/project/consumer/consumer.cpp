// The public header compiles on its own, first in a file, without any other header of Ridge.
#include <ridge/ridge.h>

int main() { return 0; }
