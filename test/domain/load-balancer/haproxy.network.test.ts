/** The real programs read every configuration that can be accepted. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { proxyConfiguration } from '../../../domain/load-balancer/haproxy.ts'
import { balancerRuleset } from '../../../domain/load-balancer/ruleset.ts'
import { keepalivedConfiguration } from '../../../domain/load-balancer/keepalived.ts'
import { type LoadBalancerConfiguration, MEMBERS_OF_BACKEND_MAXIMUM } from '../../../domain/load-balancer/rules.ts'
import { makeCertificate } from '../../../kit/sys/certificate.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { backendOf, CERTIFICATES, Configurations, EVERYTHING, frontendOf, memberOf } from './samples.ts'

const run = promisify(execFile)
const RUNS = 40
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-proxy-'))
  for (const id of CERTIFICATES) {
    const { certificate, key } = await makeCertificate({
      commonName: id,
      days: 30,
      now: new Date(),
      random: systemRandom,
      hosts: [`${id}.example`],
    })
    await writeFile(join(folder, `${id}.pem`), certificate + key)
  }
})
afterAll(() => rm(folder, { recursive: true }))

/** What HAProxy says of the configuration; empty when it takes it without a warning. */
async function complaintOf(configuration: LoadBalancerConfiguration): Promise<string> {
  const text = proxyConfiguration(configuration, {
    certificates: folder,
    serverState: join(folder, 'state'),
  })
  const file = join(folder, 'haproxy.cfg')
  // As the script of the machines starts it, which alone makes a configuration without frontends one that runs.
  await writeFile(
    file,
    text.replace('global\n', `global\n  stats socket ${join(folder, 'socket')} mode 600 level admin\n`),
  )
  return run('haproxy', ['-c', '-q', '-f', file]).then(
    ({ stderr }) => stderr,
    (error: { readonly code: number; readonly stderr: string }) => `status ${error.code}: ${error.stderr}`,
  )
}

test('HAProxy takes every setting', async () => expect(await complaintOf(EVERYTHING)).toBe(''))

test('HAProxy takes as many members as a backend may have', async () => {
  const members = Array.from({ length: MEMBERS_OF_BACKEND_MAXIMUM }, (_, index) =>
    memberOf({ id: `member-${index}`, name: `m-${index}`, port: index + 1 }),
  )
  expect(await complaintOf({ frontends: [frontendOf()], backends: [backendOf({ members })] })).toBe('')
})

test('HAProxy takes everything that can be accepted', async () => {
  await fc.assert(
    fc.asyncProperty(Configurations, async (configuration) => {
      expect(await complaintOf(configuration)).toBe('')
    }),
    { numRuns: RUNS },
  )
})

/** The shell continues in a separate network, where the file is keepalived's configuration. */
async function besideKeepalived(...commands: readonly string[]) {
  const file = join(folder, 'keepalived.conf')
  await writeFile(
    file,
    keepalivedConfiguration({
      heartbeat: { interface: 'veth0', ownAddress: '10.0.0.2', peerAddress: '10.0.0.3' },
      routerId: 7,
      priority: 200,
      shared: [
        { address: '10.0.0.4', prefix: 24, interface: 'veth0' },
        { address: 'fd00::4', prefix: 64, interface: 'veth0' },
        { address: '198.18.0.9', prefix: 16, interface: 'veth0' },
        { address: '2001:db8::1', prefix: 128, interface: 'veth0' },
      ],
      publicRoute: { address: '198.18.0.9', gateway: '198.18.0.1', interface: 'veth0' },
      faultFile: '/run/proxy-fault',
    }),
  )
  const network = ['cd "$0"', 'ip link add veth0 type veth peer name veth1', 'ip link set veth0 up']
  return run('unshare', ['--net', 'sh', '-c', [...network, ...commands].join(' && '), folder])
}

test('keepalived takes what it shares addresses by', async () => {
  expect((await besideKeepalived('keepalived --config-test --use-file keepalived.conf')).stderr).toBe('')
})

test('it has time for its first words on a slow machine before the kernel ends it', async () => {
  const { stdout } = await besideKeepalived(
    '(keepalived --dont-fork --vrrp --use-file keepalived.conf --pid=$PWD/pid --vrrp_pid=$PWD/vrrp 2>/dev/null & :)',
    'until [ -s vrrp ]; do sleep 0.1; done',
    'until grep "Max realtime timeout .* us" /proc/$(cat vrrp)/limits | grep -v unlimited; do sleep 0.1; done',
    'kill $(cat pid)',
  )
  expect(stdout).toMatch(/Max realtime timeout +1000000 +2000000/)
})

test('nft takes what may come to a machine from outside', async () => {
  const file = join(folder, 'rules.nft')
  for (const addresses of [[], ['198.18.0.9', '2001:db8::1']]) {
    await writeFile(file, balancerRuleset({ interface: 'eth0', addresses }))
    expect((await run('unshare', ['--net', 'nft', '--check', '--file', file])).stderr).toBe('')
  }
})
