// By Boost.Math. Its headers are heavy, so this is the only file that includes them.
#include "compare/distributions.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace assay::compare {
namespace {

namespace math = boost::math;
namespace policies = boost::math::policies;

// Infinities and NaN instead of exceptions.
using NoThrow = policies::policy<policies::domain_error<policies::ignore_error>,
                                 policies::pole_error<policies::ignore_error>,
                                 policies::overflow_error<policies::ignore_error>,
                                 policies::evaluation_error<policies::ignore_error>>;
using Normal = math::normal_distribution<double, NoThrow>;
using StudentsT = math::students_t_distribution<double, NoThrow>;
using Binomial = math::binomial_distribution<double, NoThrow>;

}  // namespace

double normal_cdf(double z) {
  return math::cdf(Normal(), z);
}

double normal_quantile(double p) {
  return math::quantile(Normal(), p);
}

double student_quantile(double p, double freedom) {
  return math::quantile(StudentsT(freedom), p);
}

double fair_coin_cdf(std::int64_t heads, std::int64_t tosses) {
  if (heads < 0) return 0;
  return math::cdf(Binomial(static_cast<double>(tosses), 0.5), static_cast<double>(heads));
}

}  // namespace assay::compare
