/** What a migration must not do while processes of the release before it and of its own use the database. */
import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type DatabaseConnection,
} from 'kysely'
import type { Migration } from '../../db/kit/migrate.ts'

/** The statements of the migration on a database whose tables are empty. */
export async function statementsOf({ up }: Migration): Promise<readonly string[]> {
  const statements: string[] = []
  const nothing: DatabaseConnection = {
    executeQuery: async ({ sql }) => (statements.push(sql), { rows: [] }),
    streamQuery: () => {
      throw new Error('a migration reads no stream')
    },
  }
  class Recording extends DummyDriver {
    override acquireConnection = async (): Promise<DatabaseConnection> => nothing
  }
  await up(
    new Kysely<unknown>({
      dialect: {
        createAdapter: () => new PostgresAdapter(),
        createDriver: () => new Recording(),
        createIntrospector: (db) => new PostgresIntrospector(db),
        createQueryCompiler: () => new PostgresQueryCompiler(),
      },
    }),
  )
  return statements.map((text) => text.replace(/\s+/g, ' ').trim().toLowerCase())
}

interface Statement {
  readonly text: string
  readonly isResumable: boolean
  /** The table was made by this migration: nobody uses it. */
  readonly isOfNewTable: boolean
}

const TAKES_AWAY = 'takes away what the release before uses: into a migration that finishes an upgrade (finishes)'

/** A fault, and where it is one. */
const RULES: readonly { readonly fault: string; readonly isFault: (statement: Statement) => boolean }[] = [
  {
    fault: 'builds an index while nobody can write: isResumable and createIndexes',
    isFault: ({ text, isOfNewTable }) => /^create (unique )?index (?!concurrently)/.test(text) && !isOfNewTable,
  },
  {
    fault: 'is concurrent inside of a transaction: isResumable',
    isFault: ({ text, isResumable }) => / concurrently /.test(text) && !isResumable,
  },
  {
    fault: 'cannot be run again: createIndexes',
    isFault: ({ text }) => /^(create|drop) .*concurrently (?!if (not )?exists)/.test(text),
  },
  {
    fault: 'waits for locks without a limit: into a migration in a transaction, which has a lock_timeout',
    isFault: ({ text, isResumable }) =>
      isResumable && !/^(select|with|update|delete|insert|(create|drop) (unique )?index concurrently) /.test(text),
  },
  {
    fault: 'sets its own limits',
    isFault: ({ text }) => /lock_timeout|statement_timeout/.test(text),
  },
  {
    fault: TAKES_AWAY,
    isFault: ({ text }) =>
      [
        /^drop (table|view|function|type)/,
        /^alter table .*\b(drop (column|constraint)|rename)\b/,
        /\balter column .*\b(type|set not null|drop default)\b/,
      ].some((pattern) => pattern.test(text)),
  },
  {
    fault: 'adds a column that rows of the release before do not have: nullable, or with a default',
    isFault: ({ text, isOfNewTable }) =>
      !isOfNewTable && addedColumns(text).some((one) => / not null/.test(one) && !/ default /.test(one)),
  },
  {
    fault: 'writes every row: a default that is the same for all of them',
    isFault: ({ text, isOfNewTable }) =>
      !isOfNewTable &&
      addedColumns(text).some((one) =>
        /default .*(random|uuid|clock_timestamp|nextval)|generated|\b(big)?serial\b/.test(one),
      ),
  },
  {
    fault: 'reads every row while nobody can write: not valid, and validated by a later migration',
    isFault: ({ text, isOfNewTable }) =>
      !isOfNewTable &&
      /^alter table .*(add (constraint|check|foreign key)| references )/.test(text) &&
      !/not valid/.test(text),
  },
  {
    fault: 'builds an index inside of a constraint while nobody can write: a unique index first, then "using index"',
    isFault: ({ text, isOfNewTable }) =>
      !isOfNewTable && /^alter table .*\b(unique|primary key|exclude)\b/.test(text) && !/using index/.test(text),
  },
  { fault: 'locks a table by itself', isFault: ({ text }) => text.startsWith('lock ') },
  { fault: 'writes the table anew', isFault: ({ text }) => /^(cluster|reindex|vacuum full|truncate)\b/.test(text) },
]

/** Each `add column`, without those that come after it. */
const addedColumns = (text: string): readonly string[] =>
  text.startsWith('alter table ') ? text.split(/(?:,|^alter table \S+) add (?=column )/).slice(1) : []

const TABLES = [
  /^alter table (?:only )?(\S+)/,
  /^create (?:unique )?index (?:concurrently )?(?:if not exists )?\S+ on (\S+)/,
  /^(?:update|delete from|insert into) (\S+)/,
]
const tableOf = (text: string): string => TABLES.flatMap((pattern) => pattern.exec(text)?.[1] ?? []).at(0) ?? ''

/** What is wrong with the migration, each with its statement. */
export async function faultsOf(migration: Migration): Promise<readonly string[]> {
  const isResumable = migration.isResumable === true
  const statements = await statementsOf(migration)
  const made = new Set(statements.flatMap((text) => /^create table (?:if not exists )?(\S+)/.exec(text)?.[1] ?? []))
  const faults = statements.flatMap((text) => {
    const isOfNewTable = made.has(tableOf(text))
    const rules = RULES.filter(({ fault }) => fault !== TAKES_AWAY || migration.finishes === undefined)
    const faulty = rules.filter(({ isFault }) => isFault({ text, isResumable, isOfNewTable }))
    return faulty.map(({ fault }) => `${fault}: ${text}`)
  })
  const altered = new Set(statements.flatMap((text) => (text.startsWith('alter table ') ? tableOf(text) : [])))
  const writes = statements.filter((text) => /^(with|update|delete from) /.test(text) && altered.has(tableOf(text)))
  return [
    ...faults,
    ...writes.map((text) => `writes rows while nobody can read them: into a resumable migration: ${text}`),
  ]
}
