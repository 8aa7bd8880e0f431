import { describe, expect, test } from 'vitest'
import {
  plan,
  type PoolAction,
  type PoolObject,
  poolOf,
  type Observed,
} from '../../../../controllers/nouns/public-pool/plan.ts'
import type { Action } from '../../../../kit/reconcile/action.ts'
import type { PublicPoolSpec, PublicPoolStatus } from '../../../../resources/public-pool/index.ts'
import { pendingProgress } from '../../../../controllers/kit/operation/progress.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const LATER = new Date('2026-01-01T01:00:00Z')
const stanza = (action: PoolAction, id = 'op-1'): OperationStanza => ({
  id,
  kind: 'public_pool.sync',
  requestedAt: NOW.toISOString(),
  deadlineAt: '2026-01-01T00:10:00Z',
  actor: 'operator',
  requestId: 'request-1',
  arguments: { action },
})
const done = (operation: OperationStanza) => ({
  ...pendingProgress(operation),
  status: 'succeeded' as const,
  finishedAt: NOW.toISOString(),
})
const CREATED = stanza('create', 'op-0')

interface Changes {
  readonly spec?: Partial<PublicPoolSpec>
  readonly status?: Partial<PublicPoolStatus>
  readonly observed?: Partial<Observed>
  readonly isDeleted?: boolean
}

/** A pool at rest, taken over and in use. */
function pool({ spec, status, observed, isDeleted = false }: Changes = {}): {
  readonly object: PoolObject
  readonly observed: Observed
} {
  const object: PoolObject = {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'PublicPool',
    metadata: {
      name: 'pool-1',
      uid: 'uid-1',
      generation: 2,
      resourceVersion: '1',
      ...(isDeleted ? { deletionTimestamp: NOW.toISOString() } : {}),
    },
    spec: {
      zone: 'zone-1',
      family: 'ipv6',
      cidr: '2001:db8::/40',
      use: 'server_ipv6_prefix',
      announce: 'static',
      state: 'active',
      operation: CREATED,
      ...spec,
    },
    status: { state: 'active', total: 2 ** 24, operation: done(CREATED), ...status },
  }
  return {
    object,
    observed: {
      mirror: { ...poolOf(object), state: object.status?.state ?? 'active' },
      allocated: 0,
      editor: 'user:kubectl-edit',
      ...observed,
    },
  }
}

const lineOf = (action: Action): string => {
  switch (action.do) {
    case 'effect': {
      const { state, action: audited } = action.input
      const rest = [state, action.name === 'audit' ? audited : undefined].filter((part) => typeof part === 'string')
      return [action.name, ...rest].join(' ')
    }
    case 'operation': {
      const { step, outcome, error } = action
      return ['operation', step, ...(outcome === undefined ? [] : [outcome])].join(' ') + (error ? `: ${error}` : '')
    }
    case 'status':
      return (
        `state ${String(action.status['state'])}, ` +
        `${String(action.conditions?.find(({ status }) => status === 'True')?.type)}`
      )
    case 'change': {
      // the only change that the plan makes
      const { spec } = action.patch as { readonly spec: { readonly operation: OperationStanza } }
      return `adopt ${String(spec.operation.arguments?.['action'])}`
    }
    case 'wait':
      return `wait for ${action.for}`
    default:
      return action.do
  }
}
const actionLines = ({ object, observed }: ReturnType<typeof pool>, now = NOW): string[] =>
  plan(object, observed, now).map(lineOf)

type Row = readonly [transition: string, pool: ReturnType<typeof pool>, expected: readonly string[]]
const REFUSED = [
  {
    type: 'Mirrored',
    status: 'False' as const,
    reason: 'InUse',
    message: 'It overlaps.',
    lastTransitionTime: NOW.toISOString(),
    observedGeneration: 2,
  },
]

describe('a new pool', () => {
  const fresh = { spec: { operation: stanza('create') }, status: { state: undefined, operation: undefined } }
  test('whose network was written otherwise is done as soon as the database has it', () => {
    const { object, observed } = pool({
      ...fresh,
      spec: { ...fresh.spec, cidr: '2001:DB8:70da:0000::/56', gateway: 'FE80::0001' },
    })
    const mirror = { ...poolOf(object), state: 'active' as const, cidr: '2001:db8:70da::/56', gateway: 'fe80::1' }
    expect(actionLines({ object, observed: { ...observed, mirror } })).toContain('operation announced succeeded')
  })
  test.each<Row>([
    [
      'made with kubectl gets its operation',
      pool({ spec: { operation: undefined }, status: { state: undefined, operation: undefined } }),
      ['adopt create'],
    ],
    [
      'is taken over by the database first',
      pool({ ...fresh, observed: { mirror: undefined } }),
      ['audit public_pool.create', 'mirror active', 'operation mirrored', 'wait for the database'],
    ],
    [
      'is active then',
      pool(fresh),
      ['audit public_pool.create', 'operation announced succeeded', 'state active, Ready'],
    ],
    [
      'that overlaps another fails',
      pool({ ...fresh, status: { ...fresh.status, conditions: REFUSED }, observed: { mirror: undefined } }),
      ['audit public_pool.create', 'operation mirrored failed: It overlaps.', 'state undefined, Stalled'],
    ],
    [
      'that makes no sense fails',
      pool({
        spec: { ...fresh.spec, cidr: '2001:db8::1/40' },
        status: { ...fresh.status, total: undefined },
        observed: { mirror: undefined },
      }),
      [
        'audit public_pool.create',
        'operation mirrored failed: cidr must be an IPv6 network whose address has no bits beyond its prefix.',
        'state undefined, Stalled',
      ],
    ],
    [
      'that failed is not tried again',
      pool({
        spec: { operation: CREATED },
        status: { state: undefined, operation: { ...done(CREATED), status: 'failed' } },
        observed: { mirror: undefined },
      }),
      [],
    ],
  ])('%s', (_what, world, expected) => expect(actionLines(world)).toEqual(expected))

  test('fails at its deadline', () =>
    expect(actionLines(pool({ ...fresh, observed: { mirror: undefined } }), LATER).slice(1)).toEqual([
      'operation mirrored failed: It was not done in time.',
      'state undefined, Stalled',
    ]))
})

describe('active, draining, retired', () => {
  const draining = { spec: { state: 'draining' as const, operation: stanza('update') } }
  test.each<Row>([
    ['active stays active', pool(), ['state active, Ready']],
    ['active, edited with kubectl', pool({ spec: { state: 'draining' } }), ['adopt update']],
    [
      'active to draining: the database first',
      pool(draining),
      ['audit public_pool.update', 'mirror draining', 'operation mirrored', 'wait for the database'],
    ],
    [
      'active to draining: then the owners get a mail',
      pool({ ...draining, observed: { mirror: { ...poolOf(pool(draining).object) }, allocated: 3 } }),
      ['audit public_pool.update', 'notify', 'operation announced succeeded', 'state draining, Ready'],
    ],
    [
      'an IPv4 pool has nothing to exchange',
      pool({
        spec: { ...draining.spec, family: 'ipv4', cidr: '203.0.113.0/24', use: 'server_ipv4' },
        observed: {
          mirror: {
            id: 'pool-1',
            zone: 'zone-1',
            family: 'ipv4',
            cidr: '203.0.113.0/24',
            use: 'server_ipv4',
            state: 'draining',
          },
        },
      }),
      ['audit public_pool.update', 'operation announced succeeded', 'state draining, Ready'],
    ],
    [
      'draining to active',
      pool({ spec: { operation: stanza('update') }, status: { state: 'draining' } }),
      ['audit public_pool.update', 'mirror active', 'operation mirrored', 'wait for the database'],
    ],
    [
      'draining to active, done',
      pool({
        spec: { operation: stanza('update') },
        status: { state: 'draining' },
        observed: { mirror: poolOf(pool().object) },
      }),
      ['audit public_pool.update', 'operation announced succeeded', 'state active, Ready'],
    ],
    [
      'to retired through the API: the object is deleted first',
      pool({ spec: { operation: stanza('delete') } }),
      ['audit public_pool.delete', 'remove', 'operation announced'],
    ],
    ['to retired with kubectl', pool({ isDeleted: true }), ['adopt delete']],
    [
      'to retired: not while an address is used, and none is given',
      pool({ spec: { operation: stanza('delete') }, isDeleted: true, observed: { allocated: 1 } }),
      [
        'audit public_pool.delete',
        'mirror draining',
        'operation announced',
        'state draining, Reconciling',
        'wait for its addresses to be free',
      ],
    ],
    [
      'to retired with none in use',
      pool({ spec: { operation: stanza('delete') }, isDeleted: true }),
      [
        'audit public_pool.delete',
        'forget',
        'operation announced succeeded',
        'state retired, Reconciling',
        'finalized',
      ],
    ],
    [
      'a mirror that was lost is made again',
      pool({ observed: { mirror: undefined } }),
      ['mirror active', 'wait for the database'],
    ],
    [
      'another operation replaces the one before',
      pool({ spec: { operation: stanza('delete') }, status: { operation: pendingProgress(stanza('update', 'op-9')) } }),
      ['operation mirrored cancelled'],
    ],
  ])('%s', (_what, world, expected) => expect(actionLines(world)).toEqual(expected))

  test('a deletion past its deadline has failed, and the pool goes all the same when it can', () => {
    const late = { spec: { operation: stanza('delete') }, isDeleted: true }
    expect(actionLines(pool({ ...late, observed: { allocated: 1 } }), LATER)).toContain(
      'operation announced failed: 1 of its addresses are in use; it goes when they are not.',
    )
    const failed = {
      ...late,
      status: { state: 'draining' as const, operation: { ...done(stanza('delete')), status: 'failed' as const } },
    }
    expect(actionLines(pool(failed), LATER)).toEqual(['forget', 'state retired, Reconciling', 'finalized'])
  })
})
