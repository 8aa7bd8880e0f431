import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { openGroupCommit } from '../../../db/kit/group-commit.ts'
import { Problem } from '../../../domain/problem.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()

/** Writes each name as a row, refuses those that start with `bad`, and answers the transaction that wrote it. */
function writer() {
  let tries = 0
  const write = openGroupCommit<string, string>(database.db, async (tx, names) => {
    tries += 1
    const {
      rows: [current],
    } = await sql<{ id: string }>`select pg_current_xact_id()::text as id`.execute(tx)
    await tx
      .insertInto('deployment_secret')
      .values(names.map((name) => ({ name, value: Buffer.from('x'), created_at: new Date(0) })))
      .execute()
    const bad = names.find((name) => name.startsWith('bad'))
    if (bad !== undefined) throw new Problem(422, bad)
    return names.map((name) => `${name} ${current?.id}`)
  })
  return { write, tries: () => tries }
}
const written = async (prefix: string) =>
  (
    await database.db
      .selectFrom('deployment_secret')
      .select('name')
      .where('name', 'like', `%${prefix}%`)
      .orderBy('name')
      .execute()
  ).map(({ name }) => name)

test('what comes while a transaction runs goes in the next one, and everybody has their own answer', async () => {
  const { write, tries } = writer()
  const first = write('key', 'one-0')
  await database.db.selectFrom('account').select('id').limit(1).execute() // the first transaction has begun
  const answers = await Promise.all([first, ...[1, 2, 3, 4, 5].map((index) => write('key', `one-${index}`))])
  expect(answers.map((answer) => answer.split(' ')[0])).toEqual(['one-0', 'one-1', 'one-2', 'one-3', 'one-4', 'one-5'])
  expect(new Set(answers.slice(1).map((answer) => answer.split(' ')[1])).size).toBe(1)
  expect(tries()).toBe(2)
  expect(await written('one-')).toHaveLength(6)
})

test('one that is refused leaves nothing and takes nobody with it', async () => {
  const { write } = writer()
  const results = await Promise.allSettled(
    ['two-1', 'two-2', 'bad-two-3', 'two-4', 'two-5', 'bad-two-6', 'two-7'].map((name) => write('key', name)),
  )
  expect(results.map((result) => (result.status === 'rejected' ? (result.reason as Problem).message : 'done'))).toEqual(
    ['done', 'done', 'bad-two-3', 'done', 'done', 'bad-two-6', 'done'],
  )
  expect(await written('two-')).toEqual(['two-1', 'two-2', 'two-4', 'two-5', 'two-7'])
})

test("an outage is everybody's answer: what may have been committed is not done again", async () => {
  let tries = 0
  const write = openGroupCommit<string, void>(database.db, async (tx, names) => {
    tries += 1
    await sql`select pg_terminate_backend(pg_backend_pid())`.execute(tx)
    return names.map(() => undefined)
  })
  const results = await Promise.allSettled(['a', 'b', 'c'].map((name) => write('key', name)))
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(tries).toBe(1)
})
