/** Restores a snapshot to the volumes of etcd, while no program of the control plane runs. */
import { createReadStream } from 'node:fs'
import { request } from 'node:https'
import { pipeline } from 'node:stream/promises'
import type { Credentials, ReaderCredentials } from '../core/credentials.ts'
import { digestOfFile } from '../core/snapshots.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { HostCluster } from './host-cluster.ts'
import { Deployment, Job, StatefulSet } from './kinds.ts'
import { ADDON_PARTS, API, ETCD, ETCD_NAME, MANAGER, membersOf, PORTS, READER, RESTORE, SCHEDULER } from './names.ts'
import type { PodsRecord } from './record.ts'
import { claimManifest, restoreManifest, restoreName } from './restoring.ts'
import type { HostSettings } from './settings.ts'

/** The snapshot is bad, or the volumes do not accept it. */
export class RestoreFailed extends Error {}

export interface RestoreOptions {
  readonly cluster: HostCluster
  readonly settings: HostSettings
  /** Record with the new generation. */
  readonly record: PodsRecord
  readonly credentials: Pick<Credentials, 'etcdAuthority'>
  /** Certificate that the receiver accepts. */
  readonly client: ReaderCredentials['client']
  readonly file: string
  readonly clock: Clock
  readonly signal: AbortSignal
}

const LOOK_MILLISECONDS = 500
const DEADLINE_MILLISECONDS = 600_000
const SILENCE_MILLISECONDS = 30_000

type Waiting = Pick<RestoreOptions, 'clock' | 'signal'>

async function until({ clock, signal }: Waiting, what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = clock.monotonicMilliseconds() + DEADLINE_MILLISECONDS
  while (!(await isSo())) {
    if (signal.aborted) throw new Error('the host process ends')
    if (clock.monotonicMilliseconds() > deadline) throw new RestoreFailed(`${what} in time`)
    await clock.sleep(LOOK_MILLISECONDS, signal)
  }
}

/** Stops users of the API before the API servers, and these before etcd. True once no pods are left. */
export async function stopInOrder(cluster: HostCluster): Promise<boolean> {
  const users = [...ADDON_PARTS, READER, MANAGER, SCHEDULER, API]
  for (const name of users) await cluster.remove(Deployment, name)
  if ((await cluster.podsOf(users)).length > 0) return false
  await cluster.remove(StatefulSet, ETCD)
  return (await cluster.podsOf([ETCD])).length === 0
}

/** Resolves when every member has the snapshot. Does not restart the control plane. Throws RestoreFailed. */
export async function putSnapshot(options: RestoreOptions): Promise<void> {
  const { cluster, record } = options
  await until(options, 'the control plane did not stop', () => stopInOrder(cluster))
  const members = membersOf(record).map((_, member) => member)
  await removeJobs(options, members)
  await cluster.apply(
    members.flatMap((member) => [claimManifest(record, member), restoreManifest(record, options.settings, member)]),
  )
  const sum = await digestOfFile(options.file)
  if (sum === undefined) throw new RestoreFailed('the snapshot is not there')
  await Promise.all(members.map((member) => handOver(options, member, sum)))
  await removeJobs(options, members)
}

async function removeJobs(options: RestoreOptions, members: readonly number[]): Promise<void> {
  const { cluster } = options
  for (const member of members) await cluster.remove(Job, restoreName(member))
  await until(options, 'an attempt before this one did not end', async () => {
    const jobs = await Promise.all(members.map((member) => cluster.get(Job, restoreName(member))))
    return jobs.every((job) => job === undefined) && (await cluster.podsOf([RESTORE])).length === 0
  })
}

/** The receiver exits once it has everything. If the response is lost, the status of the Job shows the result. */
async function handOver(options: RestoreOptions, member: number, sum: string): Promise<void> {
  const { cluster } = options
  const name = restoreName(member)
  let [why, isGiven] = ['nobody took it in', false]
  await until(options, `${name} has not written the snapshot`, async () => {
    const status = (await cluster.get(Job, name))?.status
    if ((status?.failed ?? 0) > 0) throw new RestoreFailed(`${name} could not write the snapshot: ${why}`)
    if ((status?.succeeded ?? 0) > 0) return true
    if (isGiven) return false
    const pods = await cluster.podsOf([RESTORE])
    const address = pods.find(({ metadata }) => metadata.labels?.['svccloud.dev/member'] === name)?.status?.podIP
    if (address !== undefined)
      await push(options, address, sum).then(
        () => ([why, isGiven] = ['etcdutl refused it', true]),
        (error: unknown) => (why = String(error)),
      )
    return false
  })
}

async function push({ credentials, client, file }: RestoreOptions, address: string, sum: string): Promise<void> {
  const host = address.includes(':') ? `[${address}]` : address
  const sent = request(`https://${host}:${PORTS.receiver}/`, {
    method: 'PUT',
    ca: credentials.etcdAuthority,
    cert: client.certificate,
    key: client.key,
    servername: ETCD_NAME,
    agent: false,
    timeout: SILENCE_MILLISECONDS,
    headers: { 'x-sha256': sum },
  })
  sent.once('timeout', () => sent.destroy(new Error('no answer in time')))
  const answered = new Promise<number>((resolve, reject) => {
    sent.once('response', (response) => resolve(response.resume().statusCode ?? 0))
    sent.once('error', reject)
  })
  const [status] = await Promise.all([answered, pipeline(createReadStream(file), sent)])
  if (status !== 200) throw new Error(`the receiver answered ${status}`)
}
