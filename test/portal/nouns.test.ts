/** Registrations of nouns, and what their actions do to several items. */
import { answer, useOutside } from './outside.ts'
import './components.ts'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { openPortal, ruleOf } from '../../portal/api/portal.ts'
import { customerPortal } from '../../portal/customer.ts'
import { faultsOf, itemSchemaOf } from '../../portal/nouns/form.ts'
import { fieldOfPart } from '../../portal/nouns/load-balancer/configuration.ts'
import type { Noun, Thing } from '../../portal/nouns/noun.ts'
import { register } from '../../portal/nouns/registry.ts'
import { loadTexts, t } from '../../portal/texts/index.ts'
import { focusFirstFault } from '../../portal/ui/faults.ts'
import { NOUNS as PATHS } from './browser/kit/paths.ts'

const outside = useOutside()

let nouns: readonly Noun[] = []
beforeAll(async () => {
  openPortal(customerPortal)
  await loadTexts()
  nouns = (await import('../../portal/nouns.ts')).NOUNS
  register(nouns)
})

const nounOf = (name: string): Noun => {
  const found = nouns.find((each) => each.name === name)
  if (found === undefined) throw new Error(`no noun ${name}`)
  return found
}

it('are all in the tests of the browser', async () => {
  // by its address: it has the types of Node, and these tests those of browsers
  const { LIVES } = (await import(join(import.meta.dirname, 'browser/kit/lives.ts'))) as {
    readonly LIVES: Readonly<Record<string, { readonly path: string }>>
  }
  expect(Object.keys(LIVES).sort()).toEqual(nouns.map(({ name }) => name).sort())
  expect(nouns.map(({ name, path }) => [name, path])).toEqual(nouns.map(({ name }) => [name, LIVES[name]?.path]))
  expect(PATHS.map(([path]) => path)).toEqual(nouns.map(({ path }) => path))
})

describe('an action', () => {
  it('that replaces a setting begins with the present one', () => {
    const without = nouns.flatMap(({ actions }) =>
      actions.filter(({ operation, form, initial }) => {
        const { method } = ruleOf(operation)
        return (method === 'PUT' || method === 'PATCH') && form !== undefined && initial === undefined
      }),
    )
    expect(without.map(({ operation }) => operation)).toEqual([])
    const { actions } = nounOf('server')
    const server = { id: 's', ha_policy: 'restart', migration_policy: 'strict', metadata_enabled: false }
    const initial = (operation: string) => actions.find((each) => each.operation === operation)?.initial?.(server)
    expect([
      initial('set_server_ha_policy'),
      initial('set_server_migration_policy'),
      initial('set_server_metadata_setting'),
    ]).toEqual([{ ha_policy: 'restart' }, { migration_policy: 'strict' }, { enabled: false }])
  })

  it('on several items shows the secret of each, and knows which were refused', async () => {
    const { joined, runAll } = await import('../../portal/nouns/actions.tsx')
    const noun = nounOf('webhook')
    const action = noun.actions.find(({ operation }) => operation === 'rotate_webhook_secret')
    if (action === undefined) throw new Error('webhooks have no rotation')
    const items: readonly Thing[] = ['a', 'b', 'c'].map((id) => ({ id, name: `hook ${id}` }))
    const idOf = (request: Request) => /webhooks\/(\w+)\//.exec(request.url)?.[1] ?? ''
    outside.serve = (request) =>
      idOf(request) === 'b'
        ? answer(409, { title: 'Conflict' })
        : answer(200, { webhook: {}, secret: `whsec_${idOf(request)}` })
    const first = await runAll(noun, action, items, {})
    expect([...first.done]).toEqual(['a', 'c'])
    expect(first.shown.map(({ name, secrets }) => [name, secrets?.values['secret']])).toEqual([
      ['hook a', 'whsec_a'],
      ['hook c', 'whsec_c'],
    ])
    // the rest, once more: what was shown is kept
    outside.serve = (request) => answer(200, { webhook: {}, secret: `whsec_${idOf(request)}` })
    const left = items.filter(({ id }) => !first.done.has(id))
    const both = joined(first, await runAll(noun, action, left, {}))
    expect([...both.done]).toEqual(['a', 'c', 'b'])
    expect(both.shown.map(({ name }) => name)).toEqual(['hook a', 'hook c', 'hook b'])
  })

  it('with a secret in its answer is not sent unless the secret can be shown', async () => {
    // of another release: the file does not exist
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier === './once.tsx' && context.parentURL?.endsWith('?gone') === true) throw new Error('gone')
        return next(specifier, context)
      },
    })
    const gone = '../../portal/nouns/actions.tsx?gone'
    const { runAll } = (await import(gone)) as typeof import('../../portal/nouns/actions.tsx')
    const noun = nounOf('webhook')
    const hook: Thing = { id: 'a', name: 'hook' }
    outside.serve = () => answer(200, { webhook: {}, secret: 'whsec_a' })
    const outcomes = await Promise.all(
      ['rotate_webhook_secret', 'delete_webhook'].map((operation) => runAll(noun, { operation } as never, [hook], {})),
    )
    expect(outcomes.map(({ done, refusals }) => [done.size, refusals.length])).toEqual([
      [0, 1],
      [1, 0],
    ])
    expect(outside.requests.filter(({ url }) => url.includes('rotate'))).toEqual([])
  })

  it('on a webhook reads its deliveries again', () => {
    expect(nounOf('webhook').reads).toContain('list_webhook_deliveries')
    expect(nounOf('webhook').looks?.['no_secret']).toBe('bad')
  })
})

describe('an edge', () => {
  it('asks before a role is taken away, and for nothing else', () => {
    const { editGoes } = nounOf('edge')
    const before = { id: 'e', roles: ['bastion', 'nat_gateway'] }
    expect(editGoes?.(before, { roles: ['bastion'] })).toEqual([t().edge.goes['nat_gateway']])
    expect(editGoes?.(before, { roles: ['bastion', 'nat_gateway', 'load_balancer'] })).toEqual([])
    expect(editGoes?.(before, {})).toEqual([])
  })
})

describe('the form of a part of a load balancer', () => {
  it('knows what a port may be', async () => {
    const bodies = await customerPortal.bodies()
    const body = bodies['set_load_balancer_configuration']
    if (body === undefined) throw new Error('the operation has no body')
    const schema = { ...itemSchemaOf(body, 'frontends'), flags: {} }
    const faults = (port: unknown) =>
      faultsOf([{ name: 'port', isNeeded: true }], schema, { port }, t().problem.field)['port']
    expect([faults(0), faults(70_000), faults('http'), faults(443)]).toEqual([
      t().problem.field.low('1'),
      t().problem.field.high('65,535'),
      t().problem.field.whole,
      undefined,
    ])
  })

  it('says the limits of an amount as it is typed', async () => {
    const { EUROS } = await import('../../portal/operator/nouns/euros.tsx')
    const schema = { properties: { amount: { minimum: 1, maximum: 10_000_000 } }, flags: {} }
    const faults = (amount: number) =>
      faultsOf([{ name: 'amount', ...EUROS }], schema, { amount }, t().problem.field)['amount']
    expect([faults(0), faults(10_000_001)]).toEqual(['At least 0.01', 'At most 100000.00'])
  })

  it('shows a refusal at its field, by whatever index it is named', () => {
    const part = { list: 'backends', at: 1, fields: { name: 'name', 'health_check.path': 'check_path' } }
    expect(fieldOfPart('backends.1.health_check.path', part)).toBe('check_path')
    expect(fieldOfPart('backends[1].name', part)).toBe('name')
    expect(fieldOfPart('backends.0.name', part)).toBeUndefined()
    expect(fieldOfPart('frontends.1.name', part)).toBeUndefined()
  })

  it('takes no name that another has', async () => {
    const { frontendQuestion, backendQuestion } = await import('../../portal/nouns/load-balancer/parts.tsx')
    const part = { name: 'web', members: [], health_check: {} }
    const balancer = { id: 'l', frontends: [{ ...part, port: 80 }], backends: [part], certificates: [] } as never
    for (const question of [frontendQuestion(balancer), backendQuestion(balancer)]) {
      expect(question.check?.({ name: 'web' })).toEqual({ name: t().balancer.nameTaken })
      expect(question.check?.({ name: 'other' })).toEqual({})
    }
    // an edit keeps its own
    expect(backendQuestion(balancer, part as never).check?.({})).toEqual({})
  })
})

describe('the first fault of a form', () => {
  it('has the focus, and nothing that is closed hides it', () => {
    const outer = { open: false, parentElement: null }
    const inner = { open: false, parentElement: { closest: () => outer } }
    const focused: string[] = []
    const field = { closest: () => inner, focus: () => focused.push('field') }
    const form = (found: unknown) => ({ querySelector: () => found }) as unknown as HTMLElement
    expect(focusFirstFault(form(field))).toBe(true)
    expect([focused, inner.open, outer.open]).toEqual([['field'], true, true])
    expect([focusFirstFault(form(null)), focusFirstFault(null)]).toEqual([false, false])
  })
})
