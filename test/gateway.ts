/** A real RADOS gateway for tests, in the cluster that the files of the tier share. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, inject } from 'vitest'
import { probePort } from '../embedded/kit/ports.ts'
import { type StoreAddress } from '../kit/s3/exchange.ts'
import { systemClock } from '../kit/sys/clock.ts'
import { newBase62, systemRandom } from '../kit/sys/random.ts'
import { eventually } from './eventually.ts'

const run = promisify(execFile)
const HOST = '127.0.0.1'

export interface TestGateway {
  readonly url: string
  /** Its administration, with the key of a user who may do as much as the platform needs, and no more. */
  readonly address: StoreAddress
  /** The command `radosgw-admin` of its administrator. */
  administer(...words: readonly string[]): Promise<string>
}

type StartedGateway = TestGateway & { stop(): Promise<void>; kill(): Promise<void> }

/** Read inside tests and hooks only. */
export function useGateway(): { readonly gateway: TestGateway } {
  let opened: StartedGateway | undefined
  beforeAll(async () => {
    opened = await startGateway(join(inject('cephFolder') ?? '', 'ceph.conf'))
  })
  afterAll(() => opened?.stop())
  return {
    get gateway() {
      if (opened === undefined) throw new Error('the gateway is there while tests and hooks run, not before')
      return opened
    },
  }
}

/** One of the cluster with this configuration of its administrator; whoever starts it stops it. */
export async function startGateway(conf: string): Promise<StartedGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'rgw-'))
  const port = await probePort(HOST, 0)
  const options = [
    '--conf',
    conf,
    '-n',
    'client.admin',
    '--rgw-data',
    folder,
    '--log-file',
    join(folder, 'log'),
    '--admin-socket',
    join(folder, 'socket'),
  ]
  const frontend = ['--rgw-frontends', `beast endpoint=${HOST}:${port}`]
  // It ends with the tests, also where those are killed.
  const daemon = spawn('setpriv', ['--pdeathsig=SIGKILL', 'radosgw', ...options, ...frontend, '-f'], {
    stdio: 'ignore',
  })
  const end = async (signal: NodeJS.Signals) => {
    if (daemon.exitCode === null && daemon.signalCode === null) {
      const ended = once(daemon, 'exit')
      daemon.kill(signal)
      await ended
    }
    await rm(folder, { recursive: true, force: true })
  }
  // It says goodbye: for one that is killed the gateways of other files wait half a minute with every change of a user.
  const stop = () => end('SIGTERM')
  const administer = async (...words: readonly string[]) =>
    (await run('radosgw-admin', ['--conf', conf, '-n', 'client.admin', ...words])).stdout
  const url = `http://${HOST}:${port}`
  try {
    await eventually('the gateway', async () => (await fetch(url)).ok || undefined)
    const credentials = { accessKeyId: newBase62(systemRandom, 20), secretAccessKey: newBase62(systemRandom, 40) }
    await administer(
      'user',
      'create',
      '--uid',
      `platform-${port}`,
      '--display-name',
      'The platform',
      '--caps',
      'users=*;buckets=read',
      '--access-key',
      credentials.accessKeyId,
      '--secret-key',
      credentials.secretAccessKey,
    )
    const address = { url, authority: null, credentials, clock: systemClock }
    return { url, address, administer, stop, kill: () => end('SIGKILL') }
  } catch (error) {
    await stop()
    throw error
  }
}
