/** What programs plan right after a creation, by the definitions: nothing, for every noun. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MANAGED, ROUTES } from '../../resources/index.ts'
import type { ManagedNoun } from '../../resources/kit/managed.ts'
import { definitionsText } from '../../tools/definitions.ts'
import { useDatabase } from '../database.ts'
import { type Cloud, openCloud, type Person } from './cloud.ts'
import { makeSamples } from './samples.ts'

type Json = Readonly<Record<string, unknown>>
interface Attribute {
  readonly mode: 'required' | 'optional' | 'default' | 'chosen' | 'computed'
  readonly default?: unknown
  readonly shows?: 'nothing' | 'presence'
  readonly at?: string
  readonly nullWithout?: string
  readonly creates?: { readonly field: string; readonly values: Json }
}
interface Definition {
  readonly noun: string
  readonly attributes: Readonly<Record<string, Attribute>>
  readonly changes: readonly {
    readonly each?: string
    readonly list?: object
    readonly sets?: Json
    readonly readBy?: object
  }[]
}
/** What a person sent to create one, and what a read showed of it. */
interface Made {
  readonly body: Json
  readonly shown: Json
}

const { nouns: DEFINITIONS } = JSON.parse(definitionsText(MANAGED, ROUTES)) as { readonly nouns: readonly Definition[] }

const database = useDatabase()
let cloud: Cloud
const made = new Map<string, Made>()

beforeAll(async () => {
  cloud = await openCloud(database.db)
  const owner = await cloud.signUp('owner@example.com')
  const watched: Person = {
    ...owner,
    async send(method, path, options) {
      const reply = await owner.send(method, path, options)
      const noun = MANAGED.find(({ routes: { create } }) => method === create.method && isPath(create.path, path))
      if (noun !== undefined && reply.status < 300)
        made.set(noun.noun, { body: (options?.body ?? {}) as Json, shown: await read(owner, noun, reply.body) })
      return reply
    },
  }
  await makeSamples({ cloud, owner: watched })
})
afterAll(() => cloud.close())

const isPath = (pattern: string, path: string): boolean =>
  new RegExp(`^${pattern.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path)

/** By its id; as the creation answers it where it has no path with its id alone. */
async function read(owner: Person, { noun, key = noun, routes, parent }: ManagedNoun, body: Json): Promise<Json> {
  const created = body[key] as Json
  if (routes.read === undefined || parent?.own !== undefined) return created
  const reply = await owner.send('GET', routes.read.path.replace('{id}', String(created['id'])))
  expect(reply.status, reply.text).toBe(200)
  return reply.body[key] as Json
}

/** What the view shows at a path; of each member of a list. */
const at = (shown: unknown, path: readonly string[]): unknown => {
  const [part, ...rest] = path
  if (part === undefined) return shown
  return Array.isArray(shown) ? shown.map((member) => at(member, path)) : at((shown as Json | null)?.[part], rest)
}

/** The same value, as far as somebody wrote it: what is shown may have more members. */
function isSame(written: unknown, shown: unknown): boolean {
  if (Array.isArray(written) && Array.isArray(shown))
    return written.length === shown.length && written.every((member, index) => isSame(member, shown[index]))
  if (typeof written === 'object' && written !== null && typeof shown === 'object' && shown !== null)
    return Object.entries(written).every(([name, value]) => isSame(value, (shown as Json)[name]))
  return (written ?? null) === (shown ?? null)
}

/** Why a program would plan a change of the attribute; undefined when it would not. */
function plannedFor(name: string, attribute: Attribute, { body, shown }: Made): string | undefined {
  const { mode, shows, nullWithout, creates } = attribute
  const values = Object.entries(creates?.values ?? {})
  const written = creates === undefined ? body[name] : values.find(([, sent]) => sent === body[creates.field])?.[0]
  const isWritten = written !== undefined && written !== null
  if (mode === 'computed' || shows === 'nothing' || (mode === 'chosen' && !isWritten)) return undefined
  if (nullWithout !== undefined && shown[nullWithout] === null) return undefined
  const wished = isWritten ? written : mode === 'default' ? attribute.default : null
  const found = at(shown, (attribute.at ?? name).split('.'))
  if (isSame(wished, shows === 'presence' ? found !== null : found)) return undefined
  return `${name}: ${JSON.stringify(wished)} is shown as ${JSON.stringify(found)}`
}

/** Parts of nouns that have no samples, or whose creation is refused while that of the whole has not ended: no host
 *  ends operations here. */
const WITHOUT_SAMPLE: readonly string[] = [
  'kubernetes_node_pool',
  'load_balancer_certificate',
  'object_storage_bucket',
  'server_interface',
  'snapshot',
]

test('there is a sample of every noun', () => {
  const missing = DEFINITIONS.flatMap(({ noun }) => (made.has(noun) ? [] : [noun]))
  expect(missing.sort()).toEqual(WITHOUT_SAMPLE)
})

describe.each(DEFINITIONS.filter(({ noun }) => !WITHOUT_SAMPLE.includes(noun)).map((one) => [one.noun, one] as const))(
  '%s',
  (noun, { attributes, changes }) => {
    test('is planned to stay as it is after its creation', () => {
      const sample = made.get(noun) ?? { body: {}, shown: {} }
      // a separate route reads them
      const apart = changes.flatMap(({ each, list, sets = {}, readBy }) => [
        ...(each === undefined || list === undefined ? [] : [each]),
        ...(readBy === undefined ? [] : Object.keys(sets)),
      ])
      const shownHere = Object.entries(attributes).filter(([name]) => !apart.includes(name))
      const planned = shownHere.map(([name, attribute]) => plannedFor(name, attribute, sample))
      expect(planned.filter((fault) => fault !== undefined)).toEqual([])
    })
  },
)
