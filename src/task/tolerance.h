/* tolerance.h - how far an honest result may be from the truth. Private to task/. */
#pragma once
#include "task/task.h"

/* For an output of `dtype` whose elements each add up `length` products. */
void tolerance_default(DType dtype, double length, double *rtol, double *atol);

/* The most products that an element of the task's outputs adds up, over all of its shapes. */
double accumulation_length(const Task *task);
