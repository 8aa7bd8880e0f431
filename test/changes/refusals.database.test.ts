/** Every refusal of the changes of every noun, by REST and by kubectl, in `test/golden/refusals/<noun>.txt`. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CHANGES } from '../../changes/index.ts'
import type { Route } from '../../kit/http/route.ts'
import { environment } from '../../kit/sys/process.ts'
import { useDatabase } from '../database.ts'
import { type Answered, answersOf, openScene, openStage, type Table } from './refusals.ts'

const FOLDER = join(import.meta.dirname, 'refusals')
const GOLDEN = join(import.meta.dirname, '../golden/refusals')
const names = (await readdir(FOLDER)).map((file) => file.replace(/\.ts$/, '')).sort()
const tables = await Promise.all(
  names.map(async (name) => {
    const { TABLE } = (await import(join(FOLDER, `${name}.ts`))) as { readonly TABLE: Table }
    return [name, TABLE] as const
  }),
)

const database = useDatabase()
let stage: Awaited<ReturnType<typeof openStage>>
beforeAll(async () => void (stage = await openStage(database.db)))
afterAll(() => stage.close())

const linesOf = ({ row: { what }, kubectl, rest }: Answered): readonly string[] => [
  what,
  ...(kubectl === undefined ? [] : [`  kubectl  ${kubectl}`]),
  ...(rest === undefined ? [] : [`  REST     ${rest}`]),
]

/** The status and the reason of an answer; `accepted` for every acceptance. Texts and names of fields are each
 *  interface's own. Kubernetes answers 422 where the schema of the kind refuses, for which REST has 400. */
function outcomeOf(answer: string): string {
  if (answer.startsWith('admitted') || answer.startsWith('2')) return 'accepted'
  const [, status = '', reason = ''] = /^(\d{3}) (?:(\w+): )?/.exec(answer) ?? []
  if (status === '400' || (status === '422' && answer.includes(' is invalid: '))) return '400'
  return `${status} ${reason}`.trim()
}

/** The rows in which the interfaces differ without a stated cause, or state one and agree. */
const disagreements = (answers: readonly Answered[]): readonly string[] =>
  answers.flatMap(({ row: { what, differs }, kubectl, rest }) => {
    const isSame = kubectl === undefined || rest === undefined || outcomeOf(kubectl) === outcomeOf(rest)
    if (isSame === (differs === undefined)) return []
    return [isSame ? `${what}: the interfaces agree` : `${what}: kubectl ${kubectl}, but REST ${rest}`]
  })

/** The routes of the noun's changes that no row gets a 2xx from, or none a refusal. */
function routesNotTried(table: Table, answers: readonly Answered[]): readonly string[] {
  const noun = CHANGES.find(({ resource }) => (resource as unknown) === table.resource)
  if (noun === undefined) return []
  const rules: readonly { readonly by?: { readonly route: Route } }[] = [noun.create, ...noun.changes, noun.remove]
  const routes = new Set(rules.flatMap(({ by }) => (by === undefined ? [] : [by.route])))
  return [...routes].flatMap(({ id, method, path }) => {
    const form = new RegExp(`^${path.replace('/v1', '').replaceAll(/\{\w+\}/g, '[^/]+')}$`)
    const tried = answers.filter(({ row: { rest } }) => rest?.method === method && form.test(rest.path))
    const isAccepted = ({ rest = '' }: Answered): boolean => rest.startsWith('2')
    return [
      ...(tried.some(isAccepted) ? [] : [`${id} is never accepted`]),
      ...(tried.every(isAccepted) ? [`${id} is never refused`] : []),
    ]
  })
}

/** Whether REST accepts the row, by the golden file; a row that is not there may be accepted. */
function isAcceptedIn(golden: string, what: string): boolean {
  const lines = golden.split('\n')
  const at = lines.indexOf(what)
  return at < 0 || lines.slice(at + 1, at + 3).some((line) => line.startsWith('  REST     2'))
}

/** Has a separate golden file, which also records audit entries and deadlines. */
const ELSEWHERE = ['server']

test('every noun with changes has a table', () => {
  const nouns = CHANGES.map(({ name }) => name.replaceAll('_', '-'))
  expect([...names, ...ELSEWHERE]).toEqual(expect.arrayContaining(nouns))
})

test.each(tables)('the changes of a %s are refused in the same words as before', async (name, table) => {
  const scene = await openScene(stage, name)
  await table.arrange(scene)
  const golden = join(GOLDEN, `${name}.txt`)
  const earlier = await readFile(golden, 'utf8').catch(() => '')
  const answers = await answersOf(stage, table, scene, (what) => isAcceptedIn(earlier, what))
  const text = `${answers.flatMap(linesOf).join('\n')}\n`
  if (environment()['UPDATE'] === '1') await writeFile(golden, text)
  expect(text).toBe(await readFile(golden, 'utf8'))
  expect(routesNotTried(table, answers)).toEqual([])
  expect(disagreements(answers)).toEqual([])
})
