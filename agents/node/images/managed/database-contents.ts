/** Contents of databases besides PostgreSQL itself, as listed in docs/database-contents.md. The build of an image with
 *  other contents fails. */

/** Locales of databases (sorting, names of months, currencies) as `locale -a` of the image names them, besides C,
 *  C.utf8 and POSIX. All use UTF-8, as databases do. */
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

/** Extensions that the owner of a database may create: PostgreSQL marks them as trusted. */
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

/** Sources of locales, and old names of time zones, which older programs use. */
export const CONTENT_PACKAGES = ['locales', 'tzdata', 'tzdata-legacy']

const OLD_ZONE = '/usr/share/zoneinfo/US/Pacific'
const lines = (values: readonly string[]): string => values.toSorted().join('\n')

/** Creates the locales. Fails when the image has other locales or extensions, or lacks the old names of time zones. */
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

/** Fails and prints the difference when the command prints other lines. */
function check(command: string, expected: readonly string[]): readonly string[] {
  const script = `set -e; ${command} | LC_ALL=C sort > /tmp/found; printf '%s\\n' "$1" > /tmp/expected
diff /tmp/expected /tmp/found >&2; rm /tmp/expected /tmp/found`
  return ['sh', '-c', script, 'check', lines(expected)]
}
