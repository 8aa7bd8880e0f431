/** Every noun that programs keep as it is written down, by the real Terraform: its example is applied, changed field by
 *  field, imported and destroyed. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { MANAGED, ROUTES } from '../../resources/index.ts'
import { eventually } from '../eventually.ts'
import { definitionsText } from '../../tools/definitions.ts'
import { TRIALS, type Trial } from './values.ts'
import { pathOf, type Program, PROGRAMS, Workspace } from './workspace.ts'

interface Call {
  readonly method: string
  readonly path: string
}
interface Definition {
  readonly noun: string
  readonly names: readonly string[]
  readonly identity?: string
  readonly parent?: { readonly field: string; readonly own?: string; readonly shownIn?: { readonly read: Call } }
  readonly routes: { readonly list?: Call; readonly read?: Call; readonly remove?: Call & { readonly needs: object } }
  readonly secrets: readonly Call[]
  readonly changes: readonly {
    readonly by?: Call
    readonly sets?: Readonly<Record<string, string>>
  }[]
  readonly attributes: Readonly<
    Record<string, { readonly replaces?: boolean; readonly mode: string; readonly alias?: string }>
  >
}
// the format that the provider reads
const { nouns } = JSON.parse(definitionsText(MANAGED, ROUTES)) as { nouns: readonly Definition[] }

test('every noun has an example', () => {
  expect(nouns.map(({ noun }) => noun).toSorted()).toEqual(Object.keys(TRIALS).toSorted())
})

const EXAMPLES = join(import.meta.dirname, '../../examples/terraform')
const tried = PROGRAMS.flatMap((program) =>
  nouns.flatMap((noun) => {
    const trial = TRIALS[noun.noun]
    if (trial === undefined) return []
    const { takes } = trial
    const isProgramThere = pathOf(program) !== undefined
    const isThere = isProgramThere && (takes === undefined || inject(takes) === true)
    const title = `${noun.noun} with ${program}`
    return [
      [
        isThere ? title : `${title} (not here: ${isProgramThere ? takes : program})`,
        noun,
        trial,
        isThere,
        program,
      ] as const,
    ]
  }),
)

interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

/** A request by REST, as another program sends it. */
async function request(method: string, path: string, body?: object): Promise<Answer> {
  const response = await fetch(`${inject('terraformUrl')}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${inject('terraformToken')}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  // answers are objects
  return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Answer['body']) }
}

const filled = (path: string, ids: readonly string[]): string =>
  ids.reduce((left, id) => left.replace(/\{\w+\}/, encodeURIComponent(id)), path)

/** What answers keep from others. */
const SECRET = /password|secret|token|kubeconfig|private/

/** Texts of an answer that nobody else may see. */
const secretsIn = (value: unknown, isSecret = false): readonly string[] => {
  if (typeof value === 'string') return isSecret ? [value] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, each]) => secretsIn(each, isSecret || SECRET.test(name)))
}

describe.each(tried)('%s', (_title, definition: Definition, trial: Trial, isThere: boolean, program: Program) => {
  const type = `svccloud_${definition.noun}`
  const { parent, routes, names, identity = 'id' } = definition
  const address = `${type}.example`
  let workspace: Workspace
  let id = ''
  /** With that of its parent first, where its paths have it. */
  let ids: readonly string[] = []
  let secrets: readonly string[] = []
  const overridden: Record<string, unknown> = {}
  const ownChange = async () => (await workspace.changes()).find((planned) => planned.address === address)

  const isPart = parent?.own !== undefined
  const idsNow = async (): Promise<readonly string[]> => {
    const attributes = await workspace.attributes(type)
    return [...(isPart ? [String(attributes[parent.field])] : []), String(attributes[identity])]
  }
  /** Whether the service shows it; too many requests, and what is not available now, are no answer to that. */
  const isShown = async (): Promise<boolean> => {
    const own = routes.read?.path
    const { status, body } = await request(
      'GET',
      filled(own ?? (routes.list ?? parent?.shownIn?.read)?.path ?? '', ids),
    )
    if (status !== 200) return status !== 404
    return own !== undefined || JSON.stringify(body).includes(`"${id}"`)
  }

  beforeAll(async () => {
    if (!isThere) return
    workspace = await Workspace.open(await readFile(join(EXAMPLES, trial.example, 'main.tf'), 'utf8'), program)
    secrets = (await trial.prepare?.(workspace.folder)) ?? []
    await workspace.apply()
    ids = await idsNow()
    id = ids.at(-1) ?? ''
  })
  beforeEach(({ skip }) => skip(!isThere, 'it is not here'))
  afterAll(() => workspace?.close())

  test('the trial has every wish', () => {
    const wishes = Object.entries(definition.attributes).filter(([, { mode }]) => mode !== 'computed')
    const named = wishes.map(([name, attribute]) => [attribute.alias ?? name, attribute] as const)
    const missing = named.filter(([name, { replaces }]) => {
      const of = replaces === true ? trial.replaced : trial.changed
      return !(name in of) && trial.untried?.[name] === undefined
    })
    expect(missing.map(([name]) => name)).toEqual([])
  })

  test('a second plan of the example is empty', async () => {
    expect(await workspace.changes()).toEqual([])
  })

  test.each(Object.entries(trial.replaced))('another %s is another object', async (name, value) => {
    await workspace.override(type, { ...overridden, ...trial.beside?.[name], [name]: value })
    expect((await ownChange())?.change.actions.toSorted()).toEqual(['create', 'delete'])
    await workspace.override(type, overridden)
  })

  test.each(Object.entries(trial.changed))('another %s is a change in place', async (name, value) => {
    Object.assign(overridden, trial.beside?.[name], { [name]: value })
    await workspace.override(type, overridden)
    expect((await ownChange())?.change.actions).toEqual(['update'])
    await workspace.apply()
    expect(await idsNow()).toEqual(ids)
    expect(await workspace.changes()).toEqual([])
  })

  test.runIf('is_protected' in trial.changed)('what is protected is refused at the plan', async () => {
    const { code, output } = await workspace.attempt('plan', '-destroy', '-input=false')
    expect(code).toBe(1)
    expect(output).toContain('is protected')
    overridden['is_protected'] = false
    await workspace.override(type, overridden)
    await workspace.apply()
  })

  test('what others change is planned to be as written again', async () => {
    const [name = ''] = names
    const patch = definition.changes.find(({ by, sets = {} }) => by?.method === 'PATCH' && name in sets)?.by
    // some have no name that can be changed
    if (patch === undefined) return
    expect([200, 202]).toContain((await request('PATCH', filled(patch.path, ids), { [name]: 'by-others' })).status)
    const { before, after } = (await ownChange())?.change ?? {}
    const differing = Object.keys(after ?? {}).filter(
      (field) => JSON.stringify(before?.[field]) !== JSON.stringify(after?.[field]),
    )
    expect(differing).toEqual([name])
    await workspace.apply()
    expect(await workspace.changes()).toEqual([])
  })

  test('it is imported by its id and by its name', async () => {
    const attributes = await workspace.attributes(type)
    for (const known of [id, ...names.map((name) => String(attributes[name]))]) {
      await workspace.run('state', 'rm', address)
      await workspace.run('import', '-input=false', address, [...ids.slice(0, -1), known].join('/'))
      const actions = (await ownChange())?.change.actions ?? []
      // what no answer shows is taken over by an update that sends nothing
      expect(['', 'update']).toContain(actions.join())
      await workspace.apply()
      expect(await workspace.changes()).toEqual([])
      expect(await idsNow()).toEqual(ids)
    }
  })

  test('no secret is in a state or a plan', async () => {
    const example = await workspace.text('main.tf')
    // a plan has a copy of the configuration, which Terraform makes
    const { configuration, ...plan } = JSON.parse(await workspace.run('show', '-json', 'plan.bin')) as {
      configuration: unknown
    }
    for (const secret of trial.secrets ?? []) {
      expect(example).toContain(secret)
      expect(JSON.stringify(configuration)).toContain(secret)
    }
    const isReadable = trial.withoutSecrets === undefined
    const reads = definition.secrets.filter(({ method }) => isReadable && method === 'GET')
    const answers = await Promise.all(reads.map(({ path }) => request('GET', filled(path, ids))))
    expect(answers.map(({ status }) => status)).toEqual(reads.map(() => 200))
    const read = answers.flatMap(({ body }) => secretsIn(body))
    expect(read.length).toBeGreaterThanOrEqual(reads.length)
    const state = await workspace.text('terraform.tfstate')
    for (const secret of [...(trial.secrets ?? []), ...secrets, ...read]) {
      expect(JSON.stringify(plan)).not.toContain(secret)
      expect(state).not.toContain(secret)
    }
  })

  const isDetachedFirst = Object.keys(routes.remove?.needs ?? {}).length > 0
  test.runIf(routes.remove !== undefined && !isDetachedFirst)(
    'what others delete is planned to be created',
    async () => {
      await eventually('it is deleted', async () => {
        await request('DELETE', filled(routes.remove?.path ?? '', ids))
        return !(await isShown()) || undefined
      })
      expect((await ownChange())?.change.actions).toEqual(['create'])
    },
  )

  test('nothing of it is left when it is destroyed', async () => {
    await workspace.apply()
    ids = await idsNow()
    id = ids.at(-1) ?? ''
    await workspace.run('destroy', '-auto-approve', '-input=false')
    expect(await isShown()).toBe(routes.remove === undefined)
  })
})
