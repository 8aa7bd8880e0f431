/** Every noun that programs keep as it is written down, by the real Terraform: its example is applied, changed field by
 *  field, imported and destroyed. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { MANAGED, ROUTES } from '../../resources/index.ts'
import { definitionsText } from '../../tools/definitions.ts'
import { TRIALS, WITHOUT_EXAMPLE, type Trial } from './values.ts'
import { Workspace } from './workspace.ts'

interface Definition {
  readonly noun: string
  readonly names: readonly string[]
  readonly routes: { readonly list: { readonly path: string }; readonly read: { readonly path: string } }
  readonly changes: readonly {
    readonly by?: { readonly method: string; readonly path: string }
    readonly sets?: Readonly<Record<string, string>>
  }[]
  readonly attributes: Readonly<Record<string, { readonly replaces?: boolean; readonly mode: string }>>
}
// the format that the provider reads
const { nouns } = JSON.parse(definitionsText(MANAGED, ROUTES)) as { nouns: readonly Definition[] }

test('every noun has an example, or a reason', () => {
  const lacking = nouns.filter(({ noun }) => noun in TRIALS === noun in WITHOUT_EXAMPLE)
  expect(lacking.map(({ noun }) => noun)).toEqual([])
})

const EXAMPLES = join(import.meta.dirname, '../../examples/terraform')
const tried = nouns.flatMap((noun) => {
  const trial = TRIALS[noun.noun]
  return trial === undefined ? [] : [[noun.noun, noun, trial] as const]
})

/** The status of a request by REST, as another program sends it. */
const request = async (method: string, path: string, body?: object): Promise<number> =>
  (
    await fetch(`${inject('terraformUrl')}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${inject('terraformToken')}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  ).status

describe.each(tried)('%s', (noun, definition: Definition, trial: Trial) => {
  const type = `svccloud_${noun}`
  const address = `${type}.example`
  let workspace: Workspace
  let id = ''
  const overridden: Record<string, unknown> = {}
  const ownChange = async () => (await workspace.changes()).find((planned) => planned.address === address)

  beforeAll(async () => {
    workspace = await Workspace.open(await readFile(join(EXAMPLES, trial.example, 'main.tf'), 'utf8'))
    await workspace.apply()
    id = String((await workspace.attributes(type))['id'])
  })
  afterAll(() => workspace.close())

  test('the trial has every wish', () => {
    const wishes = Object.entries(definition.attributes).filter(([, { mode }]) => mode !== 'computed')
    const missing = wishes.filter(([name, { replaces }]) => {
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
    overridden[name] = value
    await workspace.override(type, overridden)
    expect((await ownChange())?.change.actions).toEqual(['update'])
    await workspace.apply()
    expect((await workspace.attributes(type))['id']).toBe(id)
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
    const [name = ''] = definition.names
    const patch = definition.changes.find(({ by, sets = {} }) => by?.method === 'PATCH' && name in sets)?.by
    // some have no name that can be changed
    if (patch === undefined) return
    expect([200, 202]).toContain(await request('PATCH', patch.path.replace('{id}', id), { [name]: 'by-others' }))
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
    for (const known of [id, ...definition.names.map((name) => String(attributes[name]))]) {
      await workspace.run('state', 'rm', address)
      await workspace.run('import', '-input=false', address, known)
      const actions = (await ownChange())?.change.actions ?? []
      // what no answer shows is taken over by an update that sends nothing
      expect(['', 'update']).toContain(actions.join())
      await workspace.apply()
      expect(await workspace.changes()).toEqual([])
      expect((await workspace.attributes(type))['id']).toBe(id)
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
      expect(JSON.stringify(plan)).not.toContain(secret)
      expect(await workspace.text('terraform.tfstate')).not.toContain(secret)
    }
  })

  test('nothing of it is left when it is destroyed', async () => {
    await workspace.run('destroy', '-auto-approve', '-input=false')
    expect(await request('GET', definition.routes.read.path.replace('{id}', id))).toBe(404)
  })
})
