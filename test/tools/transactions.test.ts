import { describe, expect, test } from 'vitest'
import { findings } from '../../tools/tidy.ts'

const RULE = 'inside a transaction, which is called tx, only the database is waited for'
const linesOf = (source: string, file = 'apiserver/thing/endpoints.ts', promises?: ReadonlySet<string>) =>
  findings(file, source, undefined, promises)
    .filter(({ rule }) => rule === RULE)
    .map(({ line }) => line)
const inside = (body: string) => `await db.transaction().execute(async (tx) => {\n${body}\n})`

describe('inside a transaction, a wait is found', () => {
  test.each([
    ['for a store', inside('await tellTenant(told, row)')],
    ['for Kubernetes', inside("const server = await store.get(Server, { name: 'a' })")],
    ['for the database by another connection', inside('await readStanding(db, accountId)')],
    ['in a function within', inside('await withdraw(tx, async () => (await read())?.spec)')],
    ['beside one for the database', inside('const found = (await find(tx)) ?? (await ask(host))')],
    ['of either of two', inside('await (isNew ? add(tx, row) : tell(row))')],
    ['over a stream', inside('for await (const page of pages()) use(page)')],
    ['in a function that gets one', 'async function add(tx: Transaction<Tables>) {\n  await tell(row)\n}'],
    ['that is answered', '\nconst release = (tx) => tell(row)'],
  ])('%s', (_what, source) => expect(linesOf(source)).toEqual([2]))
  test.each([
    ['answered', inside('return store.get(key)')],
    ['of one of several', inside('await Promise.all([add(tx), store.get(key)])')],
    ['that is kept', inside('const asked = store.get(key)\nawait asked')],
    ['that goes on', inside('return store.get(key).then(use)')],
    ['of a function within', inside('await add(tx, () => store.get(key))')],
    ['in a function that gets one', 'function add(tx: Transaction<Tables>) {\n  return store.get(key)\n}'],
  ])('and so is a promise that nobody awaits: %s', (_what, source) =>
    expect(linesOf(source, undefined, new Set(['get']))).toEqual([2]),
  )
  test.each([
    ['an async function', 'async function tell() {}'],
    ['a function that answers a promise', 'const tell = (): Promise<void> => ask()'],
    ['a method', 'interface Host {\n  tell(): Promise<void>\n}'],
    ['a field', 'interface Host {\n  readonly tell: () => Promise<void>\n}'],
    ['a parameter', 'const use = (tell: () => Promise<void>) => tell'],
  ])('which the file says itself by %s', (_what, declared) => {
    const lines = declared.split('\n').length
    expect(linesOf(`${declared}\n${inside('return tell()')}`)).toEqual([lines + 2])
  })
  test('with any name', () => {
    expect(linesOf('\nasync function add(t: Transaction<Tables>) {}')).toEqual([2])
    expect(linesOf('\nawait db.transaction().execute(async (trx) => {})')).toEqual([2])
    expect(linesOf('\nawait db.transaction().execute(async () => {})')).toEqual([2])
  })
})

describe('nothing is found', () => {
  test.each([
    ['in statements', inside("await tx.selectFrom('a').execute()\nawait sql`select 1`.execute(tx)")],
    ['in functions of db', inside('const row = await find(tx, id)\nawait Promise.all([add(tx, row), end(tx)])')],
    ['outside', 'await tell(row)\nawait db.transaction().execute((tx) => add(tx, row))\nawait store.get(Server, key)'],
    [
      'around it',
      'const row = await inTurn(async () => {\n  await tell()\n  return db.transaction().execute((tx) => add(tx))\n})',
    ],
    ['in what is given on', 'await db.transaction().execute(work)'],
    [
      'in types',
      'type Work = (tx: Transaction<Tables>) => Promise<void>\nconst run = async (work: Work) => await go(work)',
    ],
    ['in a value that a name of a promise elsewhere has', 'const ask = () => 1\n' + inside('return ask()')],
    ['in what is used at once', inside('return zones.get(name)?.spec')],
    ['in collections', inside('const row = rows.find(isOpen)\nreturn rows.filter((one) => names.has(one))')],
  ])('%s', (_what, source) => expect(linesOf(source, undefined, new Set(['ask', 'get', 'find', 'has']))).toEqual([]))
  test('in layers that know the database only', () =>
    expect(linesOf(inside('await find()'), 'db/thing/index.ts')).toEqual([]))
})
