/** What databases have besides PostgreSQL itself, as docs/database-contents.md lists it: an image with anything else is
 *  not finished. */

/** Whose sorting and names of months and currencies databases have, as `locale -a` of the image names them, besides
 *  C, C.utf8 and POSIX. All are of UTF-8, as databases are. */
export const DATABASE_LOCALES = [
  'cs_CZ',
  'da_DK',
  'de_AT',
  'de_CH',
  'de_DE',
  'el_GR',
  'en_GB',
  'en_US',
  'es_ES',
  'es_MX',
  'fi_FI',
  'fr_CA',
  'fr_FR',
  'hu_HU',
  'it_IT',
  'ja_JP',
  'ko_KR',
  'nb_NO',
  'nl_NL',
  'pl_PL',
  'pt_BR',
  'pt_PT',
  'ro_RO',
  'ru_RU',
  'sv_SE',
  'tr_TR',
  'uk_UA',
  'zh_CN',
].map((name) => `${name}.utf8`)

/** Those that the owner of a database may create: PostgreSQL trusts them. */
export const DATABASE_EXTENSIONS = [
  'btree_gin',
  'btree_gist',
  'citext',
  'cube',
  'dict_int',
  'fuzzystrmatch',
  'hstore',
  'intarray',
  'isn',
  'lo',
  'ltree',
  'pg_trgm',
  'pgcrypto',
  'plpgsql',
  'seg',
  'tablefunc',
  'tcn',
  'tsm_system_rows',
  'tsm_system_time',
  'unaccent',
  'uuid-ossp',
]

/** Sources of locales, and names of time zones that older programs use. */
export const CONTENT_PACKAGES = ['locales', 'tzdata', 'tzdata-legacy']

const OLD_ZONE = '/usr/share/zoneinfo/US/Pacific'
const lines = (values: readonly string[]): string => values.toSorted().join('\n')

/** Makes the locales, and fails where the image has others, other extensions, or no old names of time zones. */
export const CONTENT_COMMANDS: readonly (readonly string[])[] = [
  ...DATABASE_LOCALES.map((name) => [
    'localedef',
    '-c',
    '-f',
    'UTF-8',
    '-A',
    '/usr/share/locale/locale.alias',
    '-i',
    name.replace('.utf8', ''),
    name.replace('.utf8', '.UTF-8'),
  ]),
  check("locale -a | grep -vxE 'C|C.utf8|POSIX'", DATABASE_LOCALES),
  check(
    "grep -l '^trusted = true' /usr/share/postgresql/*/extension/*.control | xargs -n1 basename -s .control",
    DATABASE_EXTENSIONS,
  ),
  ['test', '-e', OLD_ZONE],
]

/** Fails, and prints the difference, where the command prints other lines. */
function check(command: string, expected: readonly string[]): readonly string[] {
  const script = `set -e; ${command} | LC_ALL=C sort > /tmp/found; printf '%s\\n' "$1" > /tmp/expected
diff /tmp/expected /tmp/found >&2; rm /tmp/expected /tmp/found`
  return ['sh', '-c', script, 'check', lines(expected)]
}
