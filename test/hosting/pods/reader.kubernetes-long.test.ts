/** The reader of a control plane in a pod, with a real API server and a real etcd. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findKubernetes } from '../../../hosting/processes/programs.ts'
import { readRecord } from '../../../hosting/processes/record.ts'
import { probePort } from '../../../embedded/kit/ports.ts'
import { ETCD_NAME } from '../../../hosting/pods/names.ts'
import { PodReader } from '../../../hosting/pods/reader.ts'
import { openCredentials, openReaderCredentials } from '../../../hosting/core/credentials.ts'
import { takeSnapshot } from '../../../hosting/core/snapshots.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { nodeBinary } from '../../../kit/sys/process.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'
import { type Hosted, isWhole, kubeClient, newDesired, openHosted, untilState } from '../processes/hosted.ts'

const parts = { clock: systemClock, random: systemRandom }
const desired = newDesired()
let hosted: Hosted
let program: ChildProcess
let reader: PodReader
let folder: string
let addresses: { readonly api: string; readonly etcd: string }
const urlOf = (port: number | undefined) => `https://127.0.0.1:${port}`

beforeAll(async () => {
  hosted = await openHosted()
  await hosted.host.ensure(desired)
  await untilState(hosted, desired.id, isWhole)
  folder = join(hosted.folder, desired.id)
  // As members of etcd in pods are known.
  await hosted.reopen(async () => void (await openCredentials({ folder, hosts: [], etcdHosts: [ETCD_NAME], ...parts })))
  await untilState(hosted, desired.id, isWhole)
  const [replica] = (await readRecord(folder))?.replicas ?? []
  addresses = { api: urlOf(replica?.api), etcd: urlOf(replica?.etcdClient) }
  const credentials = await openReaderCredentials({ folder, ...parts })
  const port = await probePort('127.0.0.1', 0)
  const file = join(import.meta.dirname, '../../../hosting/pods/pod/reader.ts')
  program = spawn(nodeBinary(), [file, folder, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] })
  if (program.stdout !== null) await once(program.stdout, 'data')
  const replace = () => expect.unreachable('it is believed')
  reader = new PodReader({ credentials, address: () => urlOf(port), replace, clock: systemClock })
})
afterAll(async () => {
  reader?.close()
  program?.kill('SIGKILL')
  await hosted?.end()
})

test('an API server and a member of etcd are seen to be well, and those that are not there are not', async () => {
  const { api, etcd } = addresses
  const seen = await reader.ask('look', { apis: [api, urlOf(1), null], members: [etcd, api] })
  expect(seen).toEqual({ apis: [true, false, false], members: [true, false] })
})

test('the objects of the platform are made, and a token that it gets lets its holder in', async () => {
  await reader.ask('prepare', addresses.api, desired, true)
  expect(await reader.ask('nodes', addresses.api)).toEqual([])
  expect(await reader.ask('load', addresses.api)).toMatchObject({ nodes: [] })
  const person = { id: newUuid(systemRandom), role: 'edit' } as const
  const { token } = await reader.ask('personToken', addresses.api, person, 3_600)
  const state = await untilState(hosted, desired.id, isWhole)
  const path = '/api/v1/namespaces/default/configmaps'
  await until(
    'its role to be known',
    () => kubeClient(state, token).send('GET', path),
    ({ status }) => status === 200,
  )
  await reader.ask('removePerson', addresses.api, person)
})

test('a snapshot of etcd streams through it, and etcdutl takes it for a whole one', async () => {
  const programs = await findKubernetes()
  if (programs === undefined) throw new Error('the programs of control planes are not built')
  const taken = { folder: hosted.folder, id: 'streamed', etcdutl: programs.etcdutl }
  const { sizeBytes } = await takeSnapshot({ ...taken, parts: reader.snapshotParts(addresses.etcd) })
  expect(sizeBytes).toBeGreaterThan(10_000)
  const file = join(hosted.folder, 'streamed.db')
  const status = await promisify(execFile)(programs.etcdutl, ['snapshot', 'status', file, '--write-out=json'])
  expect(JSON.parse(status.stdout).totalKey).toBeGreaterThan(50)
  const api = takeSnapshot({ ...taken, id: 'none', parts: reader.snapshotParts(addresses.api) })
  await expect(api).rejects.toThrow()
})
