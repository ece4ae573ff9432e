#include "store/migrations.h"

#include "store/testing/fixture.h"

namespace assay::store {
namespace {

using base::EmbeddedFile;
using ::testing::HasSubstr;
using testing::line_of;

TEST(MigrationsTest, TakesFilesInOrder) {
  const EmbeddedFile files[] = {{"migrations/0001_project.sql", "A"},
                                {"migrations/0002_x.sql", "B"}};
  const auto migrations = parse_migrations(files);
  ASSERT_TRUE(migrations) << line_of(migrations);
  ASSERT_EQ(migrations->size(), 2U);
  EXPECT_EQ((*migrations)[1].version, 2);
  EXPECT_EQ((*migrations)[1].name, "0002_x");
  EXPECT_EQ((*migrations)[1].sql, "B");
}

TEST(MigrationsTest, RefusesHolesRepeatsAndOtherNames) {
  for (const char* second :
       {"0003_hole.sql", "0001_again.sql", "2_short.sql", "0002.sql", "0002_.sql", "0002_x.txt",
        "x0002_x.sql", "+002_x.sql", "", "0002-x.sql", "_"}) {
    const EmbeddedFile files[] = {{"0001_project.sql", ""}, {second, ""}};
    EXPECT_THAT(line_of(parse_migrations(files)), HasSubstr("expected 0002_name.sql")) << second;
  }
}

TEST(MigrationsTest, EmbedsOurs) {
  ASSERT_FALSE(embedded_migrations().empty());
  EXPECT_EQ(embedded_migrations()[0].name, "0001_project");
  EXPECT_THAT(std::string(embedded_migrations()[0].sql), HasSubstr("CREATE TABLE project"));
}

}  // namespace
}  // namespace assay::store
