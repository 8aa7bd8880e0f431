/** What must hold, whatever happened. `watchGuests` looks at every instant; the others once everything is quiet. Each
 *  answers the violations that it found, in words. */
import { GENESIS_HASH } from '../../domain/audit/chain.ts'
import { verifyAudit } from '../../db/audit/index.ts'
import { findOperation } from '../../db/operation/index.ts'
import type { Database } from '../../db/kit/open.ts'
import { isFinal } from '../../domain/operations.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Instance, Volume } from '../../resources/instance/index.ts'
import { activeOperationOf, Operation } from '../../resources/operation/index.ts'
import { Node } from '../../resources/node/index.ts'
import { PublicPool } from '../../resources/public-pool/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../resources/server/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import { type KubeObject, Secret } from '../../kit/kube/object.ts'
import { type Account, ask, type History } from './requests.ts'
import { zoneOf } from './catalog.ts'
import { areClustersQuiet } from './cluster-invariants.ts'
import { areDatabasesQuiet } from './database-invariants.ts'
import { areImagesQuiet } from './images.ts'
import { areMachinesQuiet } from './machines.ts'
import { areNetworksQuiet } from './networks.ts'
import { areObjectsQuiet } from './objects.ts'
import { arePortsQuiet } from './ports.ts'
import type { World } from './world.ts'

type ServerObject = KubeObject<ServerSpec, ServerStatus>

/** No guest runs on two hosts, and no volume has two writers, at any instant. */
export function watchGuests(world: World): string[] {
  const hostOf = new Map<string, string>()
  const violations = world.disks.write(world.hosts)
  for (const host of world.hosts) {
    for (const guest of host.machine.running()) {
      const before = hostOf.get(guest.name)
      if (before !== undefined) violations.push(`guest ${guest.name} runs on ${before} and ${host.name} at once`)
      hostOf.set(guest.name, host.name)
    }
  }
  return violations
}

/** Nothing is under way: no active operation, no object on its way out, no intent, no room held for a move. */
export async function isQuiet(world: World, db: Database): Promise<boolean> {
  const lists: readonly { readonly items: readonly Pick<KubeObject, 'metadata'>[] }[] = [
    await world.admin.list(Instance),
    await world.admin.list(Volume),
    await world.admin.list(Storage),
  ]
  const { items: storages } = await world.admin.list(Storage)
  if (storages.some((storage) => activeOperationOf(storage) !== undefined)) return false
  if (leftDisks(world.hosts, storages).length > 0) return false
  for (const areQuiet of [
    areNetworksQuiet,
    arePortsQuiet,
    areMachinesQuiet,
    areImagesQuiet,
    areObjectsQuiet,
    areDatabasesQuiet,
    areClustersQuiet,
  ])
    if (!(await areQuiet(world))) return false
  if (lists.some(({ items }) => items.some(({ metadata }) => metadata.deletionTimestamp !== undefined))) return false
  if ((await db.selectFrom('placement_target').select('server_id').execute()).length > 0) return false
  const { items: servers } = await world.admin.list(Server)
  if (
    servers.some(
      ({ spec, status, metadata }) =>
        metadata.deletionTimestamp !== undefined ||
        (spec.operation !== undefined &&
          !(status?.operation?.id === spec.operation.id && isFinal(status.operation.status))) ||
        status?.observedGeneration !== metadata.generation,
    )
  )
    return false
  const { items: pools } = await world.admin.list(PublicPool)
  const { items: nodes } = await world.admin.list(Node)
  if ([...pools, ...nodes].some(({ status, metadata }) => status?.observedGeneration !== metadata.generation))
    return false
  const { items: operations } = await world.admin.list(Operation)
  if (operations.some(({ status }) => status === undefined || !isFinal(status.status))) return false
  const { intents } = await db
    .selectFrom('change_intent')
    .select(({ fn }) => fn.countAll<number>().as('intents'))
    .executeTakeFirstOrThrow()
  return Number(intents) === 0
}

/** Disks on hosts that no storage is for. A host that comes back after its storages were deleted elsewhere has records
 *  of what lay on shared storage, and puts them away ten minutes later (`agents/node/unclaimed.ts`). */
const leftDisks = (hosts: World['hosts'], storages: readonly Pick<KubeObject, 'metadata'>[]): readonly string[] => {
  const uids = new Set(storages.map(({ metadata }) => metadata.uid))
  return hosts.flatMap(({ name, volumes }) =>
    [...volumes.keys()].flatMap((volume) =>
      uids.has(volume) ? [] : [`disk ${volume} lies on ${name} for no storage`],
    ),
  )
}

const DEADLINE_GRACE_MILLISECONDS = 150_000

/** Every promised operation exists, has ended, and not after its deadline. */
export async function checkOperations(
  world: World,
  db: Database,
  accounts: readonly Account[],
  history: History,
): Promise<string[]> {
  const violations: string[] = []
  for (const [id, accountId] of history.operations) {
    const account = accounts.find((one) => one.id === accountId)
    if (account === undefined) continue
    const answer = await ask(world, account, 'GET', `/v1/operations/${id}`)
    const operation = answer?.json?.operation
    if (operation === undefined) violations.push(`operation ${id} is lost: ${answer?.response.status}`)
    else if (!isFinal(operation.status))
      violations.push(`operation ${id} (${operation.kind}) is ${operation.status} at step ${operation.step}`)
    else {
      if (operation.status === 'failed' && operation.error === '')
        violations.push(`operation ${id} (${operation.kind}) failed without an error`)
      if (Date.parse(operation.finished_at) > Date.parse(operation.deadline_at) + DEADLINE_GRACE_MILLISECONDS)
        violations.push(
          `operation ${id} (${operation.kind}) outlived its deadline ${operation.deadline_at}: ` +
            `${operation.finished_at}`,
        )
    }
    if ((await findOperation(db, accountId, id)) === undefined) violations.push(`operation ${id} is not in history`)
  }
  return violations
}

const MUTATIONS: readonly string[] = ['POST', 'PUT', 'PATCH', 'DELETE']

/** Exactly one audit entry for each answered mutation that is due one, with the right outcome, and whole chains. */
export async function checkAudit(
  { db, clock, signedIn }: World,
  accounts: readonly Account[],
  history: History,
): Promise<string[]> {
  const violations: string[] = []
  for (const { method, path, status, requestId, account } of history.exchanges) {
    if (!MUTATIONS.includes(method)) continue
    const rows = await db
      .selectFrom('audit_entry')
      .select('body')
      .where('account_id', '=', account)
      .where('request_id', '=', requestId)
      .execute()
    const outcomes = rows.map((row) => (JSON.parse(row.body) as { outcome: string }).outcome)
    const due = !signedIn.has(requestId)
      ? undefined
      : status < 300
        ? 'success'
        : status === 403
          ? 'denied'
          : [402, 409, 422, 501, 503].includes(status)
            ? 'failed'
            : undefined
    // A 503 may leave open what happened; the sweeper finds out.
    const isRight =
      due === undefined ? outcomes.length === 0 : outcomes.length === 1 && (outcomes[0] === due || status === 503)
    if (!isRight)
      violations.push(
        `${method} ${path} answered ${status} and left ${outcomes.length} entries (${outcomes.join(', ')}), ` +
          `request ${requestId}`,
      )
  }
  for (const account of accounts) {
    const integrity = await verifyAudit(db, account.id, clock)
    if (integrity.status !== 'verified')
      violations.push(`the chain of ${account.id} is ${integrity.status}: ${JSON.stringify(integrity.break)}`)
    const first = await db
      .selectFrom('audit_entry')
      .select('previous_hash')
      .where('account_id', '=', account.id)
      .where('sequence', '=', 1)
      .executeTakeFirst()
    if (first !== undefined && first.previous_hash !== GENESIS_HASH)
      violations.push(`the chain of ${account.id} does not begin at its beginning`)
    const operations = await db
      .selectFrom('operation_history')
      .select(['id', 'kind', 'body'])
      .where('account_id', '=', account.id)
      .execute()
    const entries = await db
      .selectFrom('audit_entry')
      .select(['body', 'request_id'])
      .where('account_id', '=', account.id)
      .execute()
    const succeeded = new Set(
      entries
        .filter((entry) => (JSON.parse(entry.body) as { outcome: string }).outcome === 'success')
        .map((entry) => entry.request_id),
    )
    for (const { id, kind, body } of operations) {
      const requestId = (body as { requestId?: string }).requestId
      if (requestId !== undefined && requestId !== '' && !succeeded.has(requestId))
        violations.push(`operation ${id} (${kind}) has no audit entry of its request ${requestId}`)
    }
  }
  return violations
}

/** Claims are those of the servers that exist, within capacity and quota, and hosts hold what the servers say. */
export async function checkHoldings(world: World, db: Database): Promise<string[]> {
  const violations: string[] = []
  const { items: servers } = await world.admin.list(Server)
  const alive = new Map(servers.map((server) => [`${server.metadata.namespace}/${server.metadata.name}`, server]))
  const placements = await db.selectFrom('placement').selectAll().execute()
  for (const { account_id, server_id } of placements) {
    if (!alive.has(`${accountNamespace(account_id)}/${server_id}`))
      violations.push(`placement of ${server_id}, which does not exist`)
  }
  // No store went back: nothing may be missing that nobody deleted.
  for (const { kind, namespace, name } of await db.selectFrom('absence').selectAll().execute())
    violations.push(`${kind} ${namespace}/${name} has claims, is missing, and was not deleted`)
  const interfaces = await db.selectFrom('network_interface').select('id').execute()
  const ids = [...[...alive.keys()].map((key) => key.split('/')[1] ?? key), ...interfaces.map(({ id }) => id)]
  for (const claim of await db.selectFrom('address_claim').selectAll().execute()) {
    if (claim.holder.startsWith('server_arriving/'))
      violations.push(`claim ${claim.kind} ${claim.value} for a move that nobody makes`)
    if (!ids.some((id) => claim.holder.includes(id)))
      violations.push(`claim ${claim.kind} ${claim.value} of ${claim.holder}, which does not exist`)
  }
  for (const { account_id, server_id, zone } of placements) {
    const server = alive.get(`${accountNamespace(account_id)}/${server_id}`)
    if (server !== undefined && server.spec.zone !== zone)
      violations.push(`server ${server_id} is in ${server.spec.zone} and has its room in ${zone}`)
  }
  for (const target of await db.selectFrom('placement_target').selectAll().execute())
    violations.push(`room on ${target.node} is held for a move of ${target.server_id} that nobody makes`)
  for (const node of await db.selectFrom('node_capacity').selectAll().execute()) {
    const cores = placements
      .filter((placement) => placement.node === node.node)
      .reduce((sum, placement) => sum + placement.cores, 0)
    if (cores !== node.cores_used)
      violations.push(`node ${node.node} counts ${node.cores_used} cores used, its placements take ${cores}`)
    if (node.cores_used > node.cores)
      violations.push(`node ${node.node} is over its capacity: ${node.cores_used} of ${node.cores} cores`)
  }
  const held = await db
    .selectFrom('quota_holding')
    .select(['account_id', 'name', ({ fn }) => fn.sum<number>('amount').as('amount')])
    .groupBy(['account_id', 'name'])
    .execute()
  for (const quota of await db.selectFrom('account_quota').selectAll().execute()) {
    const amount = Number(
      held.find((one) => one.account_id === quota.account_id && one.name === quota.name)?.amount ?? 0,
    )
    if (amount !== quota.used)
      violations.push(`quota ${quota.name} of ${quota.account_id} counts ${quota.used}, holdings are ${amount}`)
    if (quota.used > quota.limit)
      violations.push(`quota ${quota.name} of ${quota.account_id} is exceeded: ${quota.used} of ${quota.limit}`)
    if (quota.name === 'servers') {
      const count = servers.filter(
        (server) =>
          server.metadata.namespace === accountNamespace(quota.account_id) &&
          placements.some((one) => one.server_id === server.metadata.name),
      ).length
      if (count > quota.limit) violations.push(`account ${quota.account_id} has ${count} servers of ${quota.limit}`)
    }
  }
  return violations
}

/** Deleted servers leave nothing, in Kubernetes and on hosts; what exists is where and what it should be. */
export async function checkHosts(world: World): Promise<string[]> {
  const violations: string[] = []
  const { items: servers } = await world.admin.list(Server)
  const uids = new Map(servers.map((server) => [server.metadata.uid, server]))
  const { items: storages } = await world.admin.list(Storage)
  const storageUids = new Set(storages.map((storage) => storage.metadata.uid))
  for (const { metadata, spec } of (await world.admin.list(Instance)).items) {
    const server = uids.get(metadata.name)
    if (server === undefined) violations.push(`Instance ${metadata.namespace}/${metadata.name} of no server`)
    else if (spec.metadata.isEnabled !== server.spec.metadataEnabled)
      violations.push(
        `server ${server.metadata.name} shall have metadata ${server.spec.metadataEnabled}, its Instance has ` +
          `${spec.metadata.isEnabled}`,
      )
  }
  for (const volume of (await world.admin.list(Volume)).items)
    if (!storageUids.has(volume.metadata.name))
      violations.push(`Volume ${volume.metadata.namespace}/${volume.metadata.name} of no storage`)
  for (const storage of storages.filter(({ spec }) => spec.isBoot || spec.serverId !== undefined))
    if (
      !servers.some(
        (server) =>
          server.metadata.namespace === storage.metadata.namespace && server.metadata.name === storage.spec.serverId,
      )
    )
      violations.push(`Storage ${storage.metadata.name} of no server`)
  violations.push(...(await checkPlaces(world, servers)))
  for (const host of world.hosts) {
    for (const guest of host.machine.running())
      if (!uids.has(guest.name)) violations.push(`guest ${guest.name} runs on ${host.name} for no server`)
  }
  violations.push(...leftDisks(world.hosts, storages))
  for (const server of servers) {
    const state = server.status?.state
    const isRunning = world.hosts.some((host) =>
      host.machine.running().some((guest) => guest.name === server.metadata.uid),
    )
    if (state === 'error') {
      if ((server.status?.stateDetail ?? '') === '')
        violations.push(`server ${server.metadata.name} is in error without a detail`)
    } else if (state !== 'started' && state !== 'stopped')
      violations.push(`server ${server.metadata.name} came to rest as ${state}`)
    else if ((state === 'started') !== isRunning)
      violations.push(`server ${server.metadata.name} is ${state}, its guest ${isRunning ? 'runs' : 'does not run'}`)
    else if ((server.spec.desiredPower === 'running') !== isRunning)
      violations.push(`server ${server.metadata.name} shall be ${server.spec.desiredPower} and is ${state}`)
  }
  return violations
}

/** A server is on exactly one node with all that it has, and what was written to its disk is there. */
async function checkPlaces(world: World, servers: readonly ServerObject[]): Promise<string[]> {
  const violations: string[] = []
  const { items: instances } = await world.admin.list(Instance)
  const { items: volumes } = await world.admin.list(Volume)
  const { items: storages } = await world.admin.list(Storage)
  for (const {
    metadata: { name, uid, namespace },
    spec: { zone },
    status,
  } of servers) {
    const home = `node-${status?.nodeName}`
    if (status?.nodeName !== undefined && zoneOf(status.nodeName) !== zone)
      violations.push(`server ${name} is in ${zone} and on ${home}`)
    const places = instances.filter(({ spec }) => spec.server.uid === uid).map(({ metadata }) => metadata.namespace)
    if (places.length > 1 || (places.length === 1 && places[0] !== home))
      violations.push(`server ${name} is on ${home} and has instances in ${places.join(', ')}`)
    for (const storage of storages.filter(
      ({ metadata, spec }) => metadata.namespace === namespace && spec.serverId === name,
    )) {
      const held = volumes.filter(({ spec }) => spec.storage.uid === storage.metadata.uid)
      if (held.length > 1 || (held.length === 1 && held[0]?.metadata.namespace !== home))
        violations.push(
          `server ${name} is on ${home} and has volumes in ` +
            `${held.map(({ metadata }) => metadata.namespace).join(', ')}`,
        )
      if (storage.spec.zone !== zone)
        violations.push(`server ${name} is in ${zone}, and its disk in ${storage.spec.zone}`)
      if (held[0]?.status?.state !== 'ready') continue
      const host = world.hosts.find((one) => `node-${one.name}` === home)
      const volume = host?.volumes.get(storage.metadata.uid ?? '')
      if (host === undefined || volume === undefined) violations.push(`the disk of server ${name} is not on ${home}`)
      else {
        const { is, was } = world.disks.contentOf(host.name, volume)
        if (is === undefined || is < was)
          violations.push(`the disk of server ${name} on ${home} holds ${is}, and ${was} was written to it`)
      }
    }
  }
  for (const { metadata } of (await world.admin.list(Secret)).items)
    if (metadata.name.startsWith('move-') || metadata.name.startsWith('copy-'))
      violations.push(`Secret ${metadata.namespace}/${metadata.name} of a move that is over`)
  const known = new Set(storages.map(({ metadata }) => metadata.uid))
  for (const [pool, disks] of world.pools) {
    for (const name of disks.keys()) {
      if (!known.has(name)) violations.push(`disk ${name} lies on shared storage for no storage`)
      else if (!volumes.some(({ metadata, spec }) => metadata.name === name && spec.pool === pool))
        violations.push(`disk ${name} lies in ${pool}, where no volume is`)
    }
  }
  return violations
}

export const checkForeignReads = (history: History): string[] =>
  history.foreignReads
    .filter(({ status }) => status !== 404 && status !== 503 && status !== 429)
    .map(({ path, status }) => `foreign ${path} answered ${status}`)
