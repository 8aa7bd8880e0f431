/** What to do so that an owner has the machines that it demands: pure, synchronous, total. A machine that is replaced
 *  is deleted first, and created again under the same name; one at a time, so that the others keep working
 *  meanwhile. */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { machineIdOf, managedByOf, MANAGED_TEMPLATE } from '../../../domain/managed-machine/rules.ts'
import { apiVersionOf, keyOf } from '../../../kit/kube/object.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { nodeOf } from '../../../resources/instance/index.ts'
import { ACCOUNT_LABEL, MACHINE_ROLE_LABEL } from '../../../resources/kit/labels.ts'
import { ManagedMachine } from '../../../resources/managed-machine/index.ts'
import { Server, type ServerSpec } from '../../../resources/server/index.ts'
import type { ConfigurationId, Machine, MachineAction, MachineDemand, Owner } from './machine.ts'

/** A machine that is unhealthy for this long is replaced. */
export const REPLACE_AFTER_SECONDS = 600
/** A machine that has not answered since it was started may still be booting: without KVM, on a busy host, that alone
 *  takes ten minutes. */
export const FIRST_ANSWER_SECONDS = 1_200
/** How long after its last report a machine in error, or one that could not be created, is replaced: news about its
 *  host may arrive later. */
export const RETRY_AFTER_SECONDS = 120
const UUID_GROUPS = [8, 4, 4, 4, 12]

export interface MachinesInput {
  readonly owner: Owner
  /** Empty to delete all machines. */
  readonly demands: readonly MachineDemand[]
  readonly machines: readonly Machine[]
  /** Names of Servers that are missing and of which something is left: none of them is made again. */
  readonly lost: readonly string[]
  readonly now: Date
}

export interface MachinesPlan {
  readonly actions: readonly MachineAction[]
  /** Every demand has a machine that is healthy with its configuration, and there are no others. */
  readonly isSettled: boolean
  /** What the plan waits for, for people; empty when for nothing. */
  readonly waitFor: string
  /** Role of the machine that is being replaced. */
  readonly replacing: string | undefined
}

/** Name of the Server of that machine: always the same, so that there are never two of one role. */
export function machineName({ uid, type }: Pick<Owner, 'uid'> & Partial<Pick<Owner, 'type'>>, role: string): string {
  const digest = createHash('sha256').update(`${uid}/${role}`).digest('hex')
  let at = 0
  return machineIdOf(UUID_GROUPS.map((length) => digest.slice(at, (at += length))).join('-'), type)
}

/** A digest for `ConfigurationId.fingerprint`: of everything that the document depends on. The names of secrets are
 *  included, their values are not. */
export const configurationFingerprint = (inputs: unknown): string =>
  createHash('sha256').update(JSON.stringify(inputs)).digest('base64url')

export function planMachines({ owner, demands, machines, lost, now }: MachinesInput): MachinesPlan {
  const pairs = demands.map((demand): Pair => {
    const name = machineName(owner, demand.role)
    return { demand, machine: machines.find(({ serverId }) => serverId === name), isLost: lost.includes(name) }
  })
  const surplus = machines.filter(({ serverId }) => !pairs.some(({ machine }) => machine?.serverId === serverId))
  const exchanged = machineToReplace(pairs, now)
  const actions = [
    ...surplus.flatMap((machine) => removal(owner, machine)),
    ...machines.flatMap(({ objects, node, isDeleting }) =>
      objects
        .filter((object) => object.metadata.deletionTimestamp === undefined && (isDeleting || nodeOf(object) !== node))
        .map((object): MachineAction => ({ do: 'remove', type: ManagedMachine, key: keyOf(object) })),
    ),
    ...(exchanged === undefined ? [] : removal(owner, exchanged)),
    ...pairs.flatMap(({ demand, machine, isLost }) =>
      (machine === undefined && isLost) || (machine === exchanged && exchanged !== undefined)
        ? []
        : ensured(owner, demand, machine),
    ),
  ]
  const waitFor = missing(pairs, surplus)
  return { actions, isSettled: waitFor === '', waitFor, replacing: exchanged?.role ?? leaving(pairs)?.role }
}

interface Pair {
  readonly demand: MachineDemand
  readonly machine: Machine | undefined
  readonly isLost: boolean
}

/** Deletes its server, once. */
export const removal = ({ namespace }: Owner, { serverId, isDeleting }: Machine): readonly MachineAction[] =>
  isDeleting ? [] : [{ do: 'remove', type: Server, key: { namespace, name: serverId } }]

const leaving = (pairs: readonly Pair[]): Machine | undefined =>
  pairs.find(({ machine }) => machine?.isDeleting === true)?.machine

const secondsSince = (instant: string | undefined, now: Date): number =>
  instant === undefined ? 0 : (now.getTime() - Date.parse(instant)) / 1_000

/** A broken machine first, else an outdated one. None while another is missing, is being deleted, or may still become
 *  healthy: a machine that works must not be deleted meanwhile. */
function machineToReplace(pairs: readonly Pair[], now: Date): Machine | undefined {
  if (pairs.some(({ machine }) => machine === undefined || machine.isDeleting)) return undefined
  const isOneBroken = ({ demand, machine }: Pair) => machine !== undefined && isBroken(demand, machine, now)
  const isWaitedFor = (pair: Pair) =>
    pair.machine?.isHealthy !== true && pair.demand.isPatient !== true && !isOneBroken(pair)
  const [broken] = pairs
    .filter(isOneBroken)
    .flatMap(({ machine }) => machine ?? [])
    .sort((one, other) => one.createdAt.localeCompare(other.createdAt))
  if (broken !== undefined) return broken.state === 'error' || !pairs.some(isWaitedFor) ? broken : undefined
  const outdated = pairs.find(({ demand, machine }) => machine !== undefined && isOutdated(demand, machine))
  const areOthersFine = pairs.every(({ machine }) => machine === outdated?.machine || machine?.isHealthy === true)
  return areOthersFine ? outdated?.machine : undefined
}

function isBroken({ isPatient = false }: MachineDemand, machine: Machine, now: Date): boolean {
  if (machine.state === 'error') {
    // A host that has returned takes a moment to report what it runs.
    const last = [machine.reportedAt ?? machine.createdAt, machine.nodeSince ?? ''].toSorted().at(-1)
    return secondsSince(last, now) >= patienceSeconds(machine, isPatient)
  }
  const since = machine.judgedSince ?? machine.startedAt ?? machine.createdAt
  const seconds = machine.reportedAt === undefined ? FIRST_ANSWER_SECONDS : REPLACE_AFTER_SECONDS
  return !isPatient && machine.state === 'started' && !machine.isHealthy && secondsSince(since, now) >= seconds
}

/** The patience with a machine in error. An unreachable host may run it well; once the host is fenced, the machine is
 *  recovered elsewhere with its disks, where another host reaches them. */
function patienceSeconds({ nodeState }: Machine, isPatient: boolean): number {
  if (nodeState === 'unreachable' || nodeState === 'fencing') return Number.POSITIVE_INFINITY
  if (nodeState === 'fenced' && isPatient) return Number.POSITIVE_INFINITY
  return nodeState === 'fenced' ? REPLACE_AFTER_SECONDS : RETRY_AFTER_SECONDS
}

const isOutdated = ({ plan, keepsImage = false }: MachineDemand, machine: Machine): boolean =>
  machine.plan !== plan ||
  (!keepsImage &&
    machine.imageVersion !== undefined &&
    machine.newestImageVersion !== undefined &&
    machine.imageVersion < machine.newestImageVersion)

/** Makes the machine match the demand, and delivers its configuration to its host. */
function ensured(owner: Owner, demand: MachineDemand, machine: Machine | undefined): readonly MachineAction[] {
  if (machine?.isDeleting === true) return []
  const isAsWanted =
    machine !== undefined &&
    machine.desiredPower === powerOf(demand, machine) &&
    isDeepStrictEqual(machine.sharedAddresses, demand.sharedAddresses)
  return [...(isAsWanted ? [] : [serverOf(owner, demand, machine)]), ...delivery(owner, demand, machine)]
}

const powerOf = ({ keepsPower = false }: MachineDemand, machine: Machine | undefined): ServerSpec['desiredPower'] =>
  keepsPower && machine !== undefined ? machine.desiredPower : 'running'

/** Delivers the configuration to the machine's host, unless the host has it. */
export function delivery(
  owner: Owner,
  { role, configuration }: MachineDemand,
  machine: Machine | undefined,
): readonly MachineAction[] {
  if (
    machine?.node === undefined ||
    configuration === undefined ||
    isSameConfiguration(machine.delivered, configuration)
  )
    return []
  const server = { namespace: owner.namespace, name: machine.serverId, uid: machine.serverUid }
  const { generation, fingerprint } = configuration
  const input = { role, node: machine.node, managedBy: managedByOf(owner), server, generation, fingerprint }
  return [{ do: 'effect', name: 'deliver', input }]
}

export const isSameConfiguration = (one: ConfigurationId | undefined, other: ConfigurationId | undefined): boolean =>
  one !== undefined && one.generation === other?.generation && one.fingerprint === other.fingerprint

/** The plan of an existing machine never changes: another plan needs another machine. */
export function serverOf(owner: Owner, demand: MachineDemand, machine: Machine | undefined): MachineAction {
  const { resource, id, uid, namespace, accountId, zone } = owner
  const spec: ServerSpec = {
    hostname: demand.hostname,
    title: '',
    zone,
    plan: machine?.plan ?? demand.plan,
    template: demand.template ?? MANAGED_TEMPLATE,
    labels: { ...demand.labels },
    desiredPower: powerOf(demand, machine),
    sshKeys: [...(demand.sshKeys ?? [])],
    haPolicy: 'restart',
    migrationPolicy: 'default',
    publicIpv4: demand.publicIpv4,
    ...(demand.networkIds.length === 0 ? {} : { networks: demand.networkIds.map((networkId) => ({ networkId })) }),
    metadataEnabled: false,
    isProtected: false,
    managedBy: managedByOf(owner),
    ...(demand.sharedAddresses.length === 0 ? {} : { sharedAddresses: [...demand.sharedAddresses] }),
  }
  // If the owner is ever deleted without its controller, the cluster's garbage collector deletes the machine.
  const owners = [{ apiVersion: apiVersionOf(resource), kind: resource.kind, name: id, uid, controller: true }]
  return {
    do: 'ensure',
    type: Server,
    draft: {
      metadata: {
        name: machineName(owner, demand.role),
        namespace,
        labels: { [ACCOUNT_LABEL]: accountId, [MACHINE_ROLE_LABEL]: demand.role },
        ownerReferences: owners,
        finalizers: [finalizerOf(Server)],
      },
      spec,
    },
  }
}

/** The first difference from the demands; empty when there is none. */
function missing(pairs: readonly Pair[], surplus: readonly Machine[]): string {
  for (const { demand, machine, isLost } of pairs) {
    const what = machine === undefined && isLost ? LOST : fault(demand, machine)
    if (what !== undefined) return `machine ${demand.role}${what}`
  }
  return surplus.length === 0 ? '' : `${surplus.length} machines to go`
}

const LOST = ' to be there: its server is missing, nobody deleted it, and its claims or its guest are left'

function fault({ plan, configuration }: MachineDemand, machine: Machine | undefined): string | undefined {
  if (machine === undefined) return ' to be made'
  if (machine.isDeleting) return ' to be exchanged'
  if (machine.state !== 'started')
    return ` to run: it is ${machine.state}${machine.stateDetail === '' ? '' : `, ${machine.stateDetail}`}`
  if (machine.plan !== plan) return ' to have its plan'
  if (configuration === undefined) return ' to receive its configuration'
  if (!isSameConfiguration(machine.delivered, configuration) || !isSameConfiguration(machine.running, configuration))
    return ` to run its configuration${machine.detail === '' ? '' : `: ${machine.detail}`}`
  return machine.isHealthy ? undefined : ` to be healthy: ${machine.detail}`
}
