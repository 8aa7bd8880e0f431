/** Registrations of nouns that programs keep as they are written down: nothing of a noun is left unsaid. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { crds } from '../../controllers/kit/crds.ts'
import { MANAGED, RESOURCES, ROUTES } from '../../resources/index.ts'
import type { Route } from '../../kit/http/route.ts'
import { itemOf } from '../../resources/kit/filters.ts'
import {
  type ManagedChange,
  type ManagedField,
  type ManagedNoun,
  membersOf,
  setBy,
  shownOf,
  specFieldOf,
} from '../../resources/kit/managed.ts'

const isRequired = (schema: z.ZodType): boolean => !schema.safeParse(undefined).success

const changedIn = ({ changes }: ManagedNoun): readonly string[] =>
  changes.flatMap((change) => Object.keys(setBy(change)))
/** With what its path says. */
const createdIn = ({ routes, leaves = [], parent }: ManagedNoun): readonly string[] => [
  ...(parent === undefined ? [] : [parent.field]),
  ...Object.keys(membersOf(routes.create.body)).filter((field) => !leaves.includes(field)),
]

interface Shown {
  readonly wishes: ReadonlySet<string>
  readonly facts: readonly string[]
  readonly moments: readonly string[]
}

/** The fields of what is shown that are not exactly one of the three, in words. */
const unclear = (shown: readonly string[], { wishes, facts, moments }: Shown): readonly string[] =>
  shown.flatMap((field) => {
    const kinds = [
      ...(wishes.has(field) ? ['a wish'] : []),
      ...(facts.includes(field) ? ['a fact'] : []),
      ...(moments.includes(field) ? ['a moment'] : []),
    ]
    return kinds.length === 1 ? [] : [`${field} is ${kinds.join(' and ') || 'nothing'}`]
  })

/** What is wrong with a registration, in words; the rules are below. */
function faultsOf(noun: ManagedNoun): readonly string[] {
  const { view, routes, changes, fields = {}, facts, moments, names, removeNeeds = {}, leaves = [], ready } = noun
  const shown = Object.keys(view.shape)
  const created = createdIn(noun)
  const wishes = new Set([...created, ...changedIn(noun)])
  const insteadOf = new Map(Object.entries(fields).map(([name, { creates }]) => [creates?.field, name]))
  const isApart = (field: string): boolean => field === noun.parent?.field || fields[field]?.shows !== undefined
  return [
    ...unclear(shown, { wishes, facts, moments }),
    ...created
      .filter((field) => shownOf(view, field, fields[field]) === undefined && !isApart(field) && !insteadOf.has(field))
      .filter((field) => !changes.some((change) => isReadApart(change, field)))
      .map((field) => `${field} of the creation is shown nowhere`),
    ...[...names, ...facts, ...moments, ...(ready === undefined ? [] : [ready.field])]
      .filter((field) => !shown.includes(field))
      .map((field) => `${field} is not shown`),
    ...[...Object.keys(fields), ...Object.keys(removeNeeds), ...rollingIn(noun)]
      .filter((field) => !wishes.has(field))
      .map((field) => `${field} is no wish`),
    ...[...leaves, ...Object.values(fields).flatMap(({ creates }) => (creates === undefined ? [] : [creates.field]))]
      .filter((field) => !(field in membersOf(routes.create.body)))
      .map((field) => `${field} is not in the creation`),
    ...Object.entries(fields).flatMap(([name, field]) => fieldFaults(name, field, wishes)),
    ...[...wishes].flatMap((name) => memberFaults(noun, name)),
    ...changes.flatMap((change) => changeFaults(noun, change)),
    ...[routes.list, routes.create, routes.read, routes.remove].flatMap((route) =>
      route === undefined || IDS.has(route.id) ? [] : [`${route.id} is gone`],
    ),
  ]
}

const rollingIn = ({ changes }: ManagedNoun): readonly string[] =>
  changes.flatMap((change) => ('rolls' in change ? (change.rolls ?? []) : []))

function fieldFaults(name: string, field: ManagedField, wishes: ReadonlySet<string>): readonly string[] {
  const { refers, nullWithout, freeWith, changedBy, of = {} } = field
  return [
    ...(changedBy === undefined || name in membersOf(changedBy.body) ? [] : [`${changedBy.id} does not take ${name}`]),
    ...(refers === undefined || NOUNS.has(refers) ? [] : [`${refers} is no noun`]),
    ...[nullWithout, freeWith]
      .filter((other) => other !== undefined && !wishes.has(other))
      .map((other) => `${name} depends on ${other}, which is no wish`),
    ...Object.entries(of).flatMap(([member, rule]) => fieldFaults(`${name}.${member}`, rule, wishes)),
  ]
}

/** The members of what a wish shows are clear as well. */
function memberFaults(noun: ManagedNoun, name: string): readonly string[] {
  const { view, routes, changes, fields = {} } = noun
  const change = changes.find((one) => name in setBy(one))
  const field = fields[name] ?? {}
  // what shows other things than are written has no members to compare
  if (field.at !== undefined || field.shows !== undefined) return []
  return partFaults(name, membersOf(routes.create.body)[name], shownApart(change) ?? shownOf(view, name, field), field)
}

/** What the members of a list show, or a part that a separate route reads. */
function shownApart(change: ManagedChange | undefined): z.ZodType | undefined {
  if (change === undefined) return undefined
  if ('each' in change) return change.list && itemOf(change.list)
  return 'readBy' in change && change.readBy !== undefined
    ? Object.values(membersOf(change.readBy.answers[200]))[0]
    : undefined
}

function partFaults(
  name: string,
  written: z.ZodType | undefined,
  shown: z.ZodType | undefined,
  { of = {}, facts = [], moments = [] }: ManagedField,
): readonly string[] {
  const inputs = membersOf(written)
  const outputs = membersOf(shown)
  return [
    ...unclear(Object.keys(outputs), { wishes: new Set(Object.keys(inputs)), facts, moments }).map(
      (fault) => `${name}.${fault}`,
    ),
    ...[...facts, ...moments].filter((part) => !(part in outputs)).map((part) => `${name}.${part} is not shown`),
    ...Object.keys(of)
      .filter((part) => !(part in inputs))
      .map((part) => `${name}.${part} is no wish`),
    ...Object.keys(inputs).flatMap((part) =>
      partFaults(`${name}.${part}`, inputs[part], outputs[part], of[part] ?? {}),
    ),
  ]
}

/** Members of lists and parts with a route of their own are read there. */
const isReadApart = (change: ManagedChange, field: string): boolean =>
  'each' in change ? change.each === field : 'readBy' in change && change.readBy !== undefined && field in setBy(change)

function changeFaults({ noun, view }: ManagedNoun, change: ManagedChange): readonly string[] {
  if ('each' in change) {
    const member = membersOf(change.add.body)
    return [
      ...(change.key in member ? [] : [`${change.add.id} does not take ${change.key}`]),
      ...(change.moves ?? [])
        .filter((field) => !(field in view.shape))
        .map((field) => `${noun} does not show ${field}`),
    ]
  }
  if ('when' in change) return []
  const { by, on, moves = [], expects = [] } = change
  const body = membersOf(by.body)
  const sent = Object.values(setBy(change))
  return [
    ...sent.filter((field) => field !== '*' && !(field in body)).map((field) => `${by.id} does not take ${field}`),
    ...(sent.includes('*') ? [] : Object.keys(body))
      .filter((field) => isRequired(body[field] ?? z.unknown()) && !sent.includes(field))
      .map((field) => `${by.id} needs ${field}`),
    ...expects.filter((field) => !(field in body)).map((field) => `${by.id} does not take ${field}`),
    ...[...moves, ...expects, ...(on === undefined ? [] : [on])]
      .filter((field) => !(field in view.shape))
      .map((field) => `${noun} does not show ${field}`),
  ]
}

const IDS = new Set(ROUTES.map(({ id }) => id))
/** Whatever a route reads by its id, and what is registered. */
const NOUNS = new Set([
  ...ROUTES.flatMap(({ id }) => (id.startsWith('get_') ? [id.slice('get_'.length)] : [])),
  ...MANAGED.map(({ noun }) => noun),
])

describe.each(MANAGED.map((noun) => [noun.noun, noun] as const))('%s', (_name, noun) => {
  test('says of each field what it is, and changes it as its routes do', () => {
    expect(faultsOf(noun)).toEqual([])
  })

  test('is what its routes create, read, and list or show in its parent', () => {
    const { routes, key = noun.noun, view, parent } = noun
    const answered = (route: Route | undefined, field: string) =>
      Object.entries(route?.answers ?? {}).flatMap(([status, answer]) =>
        ['200', '201', '202'].includes(status) ? [membersOf(answer)[field]] : [],
      )
    expect(answered(routes.create, key)).toEqual([view])
    if (routes.read !== undefined) expect(answered(routes.read, key)).toEqual([view])
    else if (parent?.shownIn !== undefined) {
      const [shown] = answered(parent.shownIn.read, parent.refers)
      expect(membersOf(membersOf(shown)[parent.shownIn.field])).toBe(view.shape)
    } else expect(routes.list && itemOf(routes.list)).toBe(view)
  })

  test('has paths with the parameters that it says', () => {
    const { routes, parent, identity = 'id' } = noun
    const parametersOf = (route: Route | undefined) =>
      [...(route?.path.matchAll(/\{(\w+)\}/g) ?? [])].map(([, name]) => name)
    expect(parametersOf(routes.create)).toEqual(parent === undefined ? [] : [parent.parameter])
    for (const route of [routes.read, routes.remove])
      if (route !== undefined)
        expect(parametersOf(route)).toEqual(parent?.own === undefined ? [identity] : [parent.parameter, parent.own])
  })

  test('is changed in place by every field of its update, or says that it is replaced', () => {
    const patched = ROUTES.filter(({ id }) => id === `update_${noun.noun}`).flatMap(({ body }) =>
      Object.keys(membersOf(body)),
    )
    expect(patched.filter((field) => !changedIn(noun).includes(field))).toEqual([])
  })
})

/** What customers list or create and no program keeps, by the reason. */
const NOT_KEPT: Readonly<Record<string, readonly string[]>> = {
  'members of a backend, which its load balancer has': ['add_load_balancer_member'],
  'made by schedules; removed by retention': [
    'create_backup',
    'list_backups',
    'list_database_backups',
    'create_kubernetes_cluster_snapshot',
    'list_kubernetes_cluster_snapshots',
  ],
  'ends by itself': ['list_playgrounds', 'start_playground'],
  'of the catalogue: programs only read it': [
    'list_dev_cluster_versions',
    'list_kubernetes_versions',
    'list_plans',
    'list_prices',
    'list_regions',
    'list_templates',
    'list_zones',
  ],
  'of people, who sign in': [
    'create_api_token',
    'create_invitation',
    'list_api_tokens',
    'list_invitations',
    'list_members',
    'list_sessions',
    'list_support_consents',
    'start_account_totp_setup',
    'start_login_second_factor_setup',
  ],
  'of billing': [
    'create_payment_setup_session',
    'list_billing_log',
    'list_credits',
    'list_invoices',
    'list_payment_methods',
  ],
  'a request to people, who answer it': [
    'create_private_cloud_request',
    'create_quota_request',
    'list_private_cloud_requests',
    'list_quota_requests',
  ],
  'what has happened, or is so': [
    'list_account_quotas',
    'list_audit_entries',
    'list_notices',
    'list_operations',
    'list_webhook_deliveries',
  ],
  'data in a bucket, which clients of S3 keep': ['list_object_storage_objects'],
}

test('whatever customers list or create is registered, or says why not', () => {
  const kept = new Set(
    MANAGED.flatMap(({ routes, changes }) => [
      routes.list?.id,
      routes.create.id,
      ...changes.flatMap((change) =>
        'each' in change ? [change.list?.id, change.add.id] : 'by' in change ? [change.by.id] : [],
      ),
    ]),
  )
  const offered = ROUTES.filter(
    (route) =>
      route.audience === 'customer' &&
      (itemOf(route) !== undefined ||
        (route.method === 'POST' && /^(create|add|allocate|enable|start)_/.test(route.id))),
  )
  const others = offered.flatMap(({ id }) => (kept.has(id) ? [] : [id]))
  expect(others.sort()).toEqual(Object.values(NOT_KEPT).flat().sort())
})

test('what a program replaces is what kubectl may not change', () => {
  const differing = MANAGED.flatMap((noun) => {
    const { noun: name, key = name } = noun
    const kind = RESOURCES.find(({ singular }) => singular === key.replaceAll('_', ''))
    const spec = Object.keys(membersOf(kind?.spec))
    const text = JSON.stringify(crds().find(({ metadata }) => metadata.name.startsWith(`${kind?.plural}.`)) ?? {})
    return [...createdIn(noun), ...changedIn(noun)]
      .map((wish) => [wish, specFieldOf(wish)] as const)
      .filter(([wish, field]) => {
        const isReplaced = !changedIn(noun).includes(wish) && noun.fields?.[wish]?.isEdited !== true
        // a rule with a condition ends with it
        const isFixed = text.includes(`"${field} cannot be changed${isReplaced ? '' : '"'}`)
        return spec.includes(field) && isFixed !== isReplaced
      })
      .map(([, field]) => `${name} ${field}`)
  })
  expect(differing).toEqual([])
})

describe('a registration', () => {
  const [key] = MANAGED.filter(({ noun }) => noun === 'ssh_key')
  if (key === undefined) throw new Error('there are no SSH keys')

  test.each<readonly [string, Partial<ManagedNoun>, string]>([
    ['that forgets a fact', { facts: ['id', 'created_at'] }, 'fingerprint is nothing'],
    ['that says a field twice', { moments: ['id'] }, 'id is a fact and a moment'],
    ['with a wish as a fact', { facts: [...key.facts, 'name'] }, 'name is a wish and a fact'],
    ['of a field that is gone', { moments: ['gone'] }, 'gone is not shown'],
    ['with a rule for no field', { fields: { gone: {} } }, 'gone is no wish'],
    ['that refers to nothing', { fields: { name: { refers: 'gone' } } }, 'gone is no noun'],
    ['that leaves what is not asked', { leaves: ['gone'] }, 'gone is not in the creation'],
    ['that waits for nothing', { ready: { field: 'gone', is: 'a', failed: 'b' } }, 'gone is not shown'],
    ['that depends on nothing', { fields: { name: { freeWith: 'gone' } } }, 'name depends on gone, which is no wish'],
    [
      'with an action that does not take the field',
      { fields: { public_key: { changedBy: key.routes.remove } } } as Partial<ManagedNoun>,
      'delete_ssh_key does not take public_key',
    ],
    [
      'that rolls what it does not write',
      { changes: [{ by: key.routes.create, sets: ['name', 'public_key'], rolls: ['gone'] }] },
      'gone is no wish',
    ],
    [
      'that expects what is not taken',
      { changes: [{ by: key.routes.create, sets: ['name', 'public_key'], expects: ['fingerprint'] }] },
      'create_ssh_key does not take fingerprint',
    ],
    [
      'that sends what is not taken',
      { changes: [{ by: key.routes.create, sets: ['fingerprint'] }] },
      'create_ssh_key does not take fingerprint',
    ],
    [
      'that leaves out what is needed',
      { changes: [{ by: key.routes.create, sets: ['name'] }] },
      'create_ssh_key needs public_key',
    ],
  ])('%s is found', (_what, more, fault) => {
    expect(faultsOf({ ...key, ...more })).toContain(fault)
  })

  test.each<readonly [string, Readonly<Record<string, ManagedField>>, string]>([
    ['a fact', { networks: {} }, 'networks.mac_address is nothing'],
    ['a rule for no field', { networks: { of: { gone: {} } } }, 'networks.gone is no wish'],
    ['what is not shown', { networks: { facts: ['gone'] } }, 'networks.gone is not shown'],
  ])('whose members lack or have %s is found', (_what, fields, fault) => {
    const [server] = MANAGED.filter(({ noun }) => noun === 'server')
    expect(server && faultsOf({ ...server, fields: { ...server.fields, ...fields } })).toContain(fault)
  })
})
