/** Operators' actions on a zone: configuring how its shared storage stores data. The controller of the zone configures
 *  the storage, as an operation of the zone. */
import {
  badField,
  conflict,
  notFound,
  notImplemented,
  operationInProgress,
  unavailable,
  zoneLacks,
} from '../../../domain/problem.ts'
import type { Answer, Call, Operator } from '../../../kit/http/call.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { STORAGE_FAILURE_DOMAINS, Zone, type ZoneSpec, type ZoneStatus } from '../../../resources/catalog/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { activeOperationOf } from '../../../resources/operation/index.ts'
import * as routes from '../../../resources/storage-placement/index.ts'
import { beginAsOperator } from '../../kit/change/begin.ts'
import type { Parts } from '../../kit/parts.ts'

type ZoneObject = KubeObject<ZoneSpec, ZoneStatus>
type PoolState = NonNullable<ZoneStatus['sharedStorage']>['pools'][number]
type SetCall = Call<typeof routes.setZoneStoragePolicy, Operator>

export function zoneEndpoints(parts: Parts): readonly Endpoint[] {
  parts.caches.of(Node)
  return [
    operatorEndpoint(routes.getZoneStoragePolicy, async ({ params: { zone } }) => ({
      status: 200,
      body: { storage_policy: viewOf(parts, await read(parts, zone)) },
    })),
    operatorEndpoint(routes.setZoneStoragePolicy, (call) => set(parts, call)),
  ]
}

async function read({ store }: Parts, zone: string): Promise<ZoneObject> {
  const found = await store.get(Zone, { name: zone })
  if (found === undefined) throw notFound('zone')
  return found
}

/** Throws 409 for a zone without shared storage. */
function poolsOf({ caches }: Parts, { metadata: { name } }: ZoneObject): readonly string[] {
  const pools = caches
    .of(Node)
    .list()
    .filter(({ spec }) => spec.zone === name)
    .flatMap(({ status }) => status?.pools ?? [])
  if (pools.length === 0) throw zoneLacks('shared_storage', `The zone ${name} has no shared storage.`)
  return [...new Set(pools)].sort()
}

/** As far as the platform knows; a value that differs between the pools is null. */
function viewOf(parts: Parts, zone: ZoneObject): routes.StoragePolicyView {
  const pools = poolsOf(parts, zone)
  const states = statesOf(zone)
  const isKnown = pools.every((pool) => states.some(({ name }) => name === pool))
  const [first, ...others] = isKnown ? states : []
  return {
    zone: zone.metadata.name,
    pools: [...pools],
    replicas:
      first !== undefined && others.every(({ replicas }) => replicas === first.replicas) ? first.replicas : null,
    failure_domain:
      STORAGE_FAILURE_DOMAINS.find((domain) => isKnown && states.every((state) => state.failureDomain === domain)) ??
      null,
  }
}

const statesOf = ({ status }: ZoneObject): readonly PoolState[] => status?.sharedStorage?.pools ?? []

async function set(parts: Parts, call: SetCall): Promise<Answer> {
  const { replicas, failure_domain: failureDomain, pools } = call.body
  const { zone } = call.params
  const operation = await beginAsOperator(parts, call, {
    kind: 'storage.rebalance_policy',
    target: { type: 'zone', id: zone },
    resource: Zone,
    read: () => read(parts, zone),
    validate: (found) => requireSettable(parts, found, call.body),
    // null removes what an earlier policy named
    spec: { sharedStorage: { policy: { replicas, failureDomain, pools: pools ?? null } } },
    detail: { replicas: String(replicas), failure_domain: failureDomain },
  })
  return { status: 202, body: { operation } }
}

/** Throws 400 for a pool that no node of the zone reaches, 409 while another change runs and when there are too few
 *  hosts or racks, 501 where somebody else administers the storage, and 503 while the storage does not answer. */
function requireSettable(parts: Parts, zone: ZoneObject, body: SetCall['body']): void {
  const known = poolsOf(parts, zone)
  const { name: id } = zone.metadata
  const { sharedStorage } = zone.spec
  const resource = { type: 'zone', id }
  const unknown = body.pools?.find((pool) => !known.includes(pool))
  if (unknown !== undefined) throw badField('pools', `${unknown} is none of the zone, which has ${known.join(', ')}`)
  if (sharedStorage === undefined)
    throw notImplemented(
      `The platform is a client of the shared storage ${known.join(', ')}. Its administrator sets there how many ` +
        'copies it keeps. Where it is a Ceph cluster, spec.sharedStorage of the Zone lets the platform do so.',
    )
  const active = activeOperationOf(zone)
  if (active !== undefined) throw operationInProgress(active.id, resource)
  const answer = zone.status?.sharedStorage
  if (answer === undefined || answer.detail !== '')
    throw unavailable(
      'host_unreachable',
      `The shared storage of the zone does not answer. ${answer?.detail ?? ''}`.trimEnd(),
    )
  const foreign = (body.pools ?? known).filter((pool) => !answer.pools.some(({ name }) => name === pool))
  if (foreign.length > 0)
    throw notImplemented(
      `${foreign.join(', ')} is no pool of the Ceph cluster that spec.sharedStorage of the Zone names.`,
    )
  for (const state of answer.pools.filter(({ name }) => (body.pools ?? known).includes(name)))
    requireEnough(state, body, resource)
}

function requireEnough(
  { name, hosts, racks }: PoolState,
  { replicas, failure_domain }: SetCall['body'],
  resource: { readonly type: string; readonly id: string },
): void {
  const count = failure_domain === 'rack' ? racks : hosts
  if (count < replicas)
    throw conflict(
      'state_not_allowed',
      `Pool ${name} has storage on ${count} ${failure_domain}${count === 1 ? '' : 's'} that is up; ${replicas} ` +
        'copies need as many. Add some, or ask for fewer copies.',
      { resource },
    )
}
