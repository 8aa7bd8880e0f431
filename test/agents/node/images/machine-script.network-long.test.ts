/** The script of managed machines with the real programs, in a network namespace instead of a guest. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { hostKeyOf } from '../../../../domain/edge/ssh-host-key.ts'
import type { MachineDocument } from '../../../../resources/managed-machine/index.ts'
import { until } from '../../../eventually.ts'
import { type MachineInNamespace, openMachineIn } from './machine-script.ts'
import { PYTHON } from '../../../python.ts'

const PORT = 8080
let namespace: string
let machine: MachineInNamespace
let macAddress: string

beforeEach(async () => {
  namespace = `mm-${newUuid(systemRandom).slice(0, 8)}`
  await runProgram('ip', ['netns', 'add', namespace])
  const ip = (...input: string[]) => runProgram('ip', ['-n', namespace, ...input])
  await ip('link', 'set', 'lo', 'up')
  await ip('link', 'add', 'own0', 'type', 'veth', 'peer', 'name', 'wire0')
  await ip('link', 'set', 'own0', 'up')
  await ip('link', 'set', 'wire0', 'up')
  await ip('address', 'add', '10.9.0.2/24', 'dev', 'own0')
  machine = await openMachineIn(namespace)
  macAddress = (await machine.run('cat', '/sys/class/net/own0/address')).trim()
})
afterEach(async () => {
  await machine.close()
  await runProgram('ip', ['netns', 'delete', namespace])
})

const proxy = (text: string): string =>
  [
    'global',
    'defaults',
    '  mode http',
    '  timeout client 5s',
    '  timeout server 5s',
    '  timeout connect 1s',
    'frontend web',
    `  bind :${PORT}`,
    `  http-request return status 200 content-type text/plain string ${text}`,
    'backend pool',
    '  server one 127.0.0.1:9 check',
    '',
  ].join('\n')

const document = (generation: number, more: Partial<MachineDocument> = {}): MachineDocument => ({
  machine: 'm1',
  generation,
  fingerprint: `f${generation}`,
  haproxy: { config: proxy(`generation-${generation}`), certificates: { 'web.pem': 'no key yet\n' } },
  ...more,
})

const vrrp = () =>
  [
    'vrrp_instance shared {',
    '  state BACKUP',
    `  interface @IF:${macAddress}@`,
    '  virtual_router_id 7',
    '  priority 100',
    '  advert_int 0.2',
    '  version 3',
    '  virtual_ipaddress {',
    '    10.9.0.9/24',
    '  }',
    '}',
    '',
  ].join('\n')

const everything = (generation: number): MachineDocument =>
  document(generation, {
    sysctl: { 'net.ipv4.ip_forward': '1' },
    addresses: [{ interface: macAddress, address: '10.9.0.3/24' }],
    keepalived: { config: vrrp() },
    nftables: 'table inet own {\n  chain input {\n    type filter hook input priority 0; policy accept;\n  }\n}',
    bastion: { authorizedKeys: [] },
    dns64: {
      config:
        'server:\n  username: ""\n  chroot: ""\n  directory: "@ROOT@"\n  pidfile: "@RUN@/unbound.pid"\n' +
        '  interface: 127.0.0.1\n  port: 5300\n  use-syslog: no\n  module-config: "dns64 iterator"\n' +
        '  dns64-prefix: 64:ff9b::/96\nremote-control:\n  control-enable: no\n',
    },
    nat64: {
      config:
        'tun-device nat64\nipv4-addr 192.168.255.1\nprefix 2001:db8:1:ffff::/96\nipv6-addr 2001:db8::1\n' +
        'dynamic-pool 192.168.255.0/24\ndata-dir @RUN@\n',
    },
    routes: [{ to: '192.168.255.0/24', device: 'nat64' }],
  })

const page = () => machine.run('curl', '--silent', '--max-time', '5', `http://127.0.0.1:${PORT}/`)

it('runs all that a machine can run, says so, and stops what the next document lacks', async () => {
  expect(await machine.ask('status')).toMatchObject({ generation: 0, isHealthy: false })
  const applied = await machine.apply(everything(1))
  expect(applied).toMatchObject({ machine: 'm1', generation: 1, fingerprint: 'f1', isHealthy: true, detail: '' })
  expect(Object.keys(applied.report.services).toSorted()).toEqual([
    'bastion',
    'dns64',
    'haproxy',
    'keepalived',
    'nat64',
    'watch',
  ])
  expect(await page()).toBe('generation-1')
  expect(await machine.run('ip', 'route', 'show', '192.168.255.0/24')).toContain('nat64')
  expect(await machine.run('nft', 'list', 'tables')).toContain('table inet own')
  expect(await machine.run('ip', 'address', 'show', 'own0')).toContain('10.9.0.3/24')
  await until(
    'the shared address',
    () => machine.ask('status'),
    ({ report }) => report.keepalived?.state === 'master',
  )
  expect((await machine.ask('status')).report.haproxy?.servers).toEqual([['pool', 'one', 'down', 0, 0, 0, 0]])

  expect(await machine.apply(document(2))).toMatchObject({ generation: 2, isHealthy: true })
  expect(Object.keys((await machine.ask('status')).report.services)).toEqual(['haproxy'])
  expect(await page()).toBe('generation-2')
  expect(await machine.run('nft', 'list', 'tables')).not.toContain('table inet own')
  expect(await machine.run('ip', 'address', 'show', 'own0')).not.toContain('10.9.0.3/24')
  expect(await machine.run('ip', 'link')).not.toContain('nat64')
})

it('uses the key of a bastion that it gets, and otherwise generates one', async () => {
  const { publicKey, privateKey: hostKey } = hostKeyOf(Buffer.alloc(32, 7))
  const bastion = { authorizedKeys: [] }
  const scanned = () => machine.run('ssh-keyscan', '-T', '5', '-t', 'ed25519', '127.0.0.1')
  expect(await machine.apply(document(1, { bastion: { ...bastion, hostKey } }))).toMatchObject({ isHealthy: true })
  expect(await until('the given key', scanned, (text) => text.includes(publicKey))).toContain(publicKey)
  expect(await machine.apply(document(2, { bastion }))).toMatchObject({ isHealthy: true })
  expect(
    await until('its own key', scanned, (text) => text.includes('ssh-ed25519') && !text.includes(publicKey)),
  ).not.toContain(publicKey)
  expect(await machine.apply(document(3, { bastion: { ...bastion, hostKey: 'nonsense' } }))).toMatchObject({
    generation: 2,
    detail: expect.stringContaining('generation 3 is refused: /usr/sbin/sshd'),
  })
})

const POSTGRESQL = {
  diskSerial: 'disk',
  database: 'shop',
  owner: 'ada',
  passwordVerifier: 'v',
  passwordGeneration: 1,
  certificate: 'pem',
  key: 'pem',
  networks: [],
  settings: {},
}

it('keeps running the old document when a new one is refused or does not run', async () => {
  await machine.apply(document(1))
  const nonsense = document(2, { haproxy: { config: 'global\nfrontend x\n  nonsense\n', certificates: {} } })
  expect(await machine.apply(nonsense)).toMatchObject({
    generation: 1,
    isHealthy: false,
    detail: expect.stringContaining('generation 2 is refused: haproxy'),
  })
  // Of another image: what nothing here runs is not passed over in silence.
  expect(await machine.apply(document(2, { postgresql: POSTGRESQL }))).toMatchObject({
    generation: 1,
    isHealthy: false,
    detail: expect.stringContaining('nothing here runs keeper, postgresql'),
  })
  expect(await machine.ask('status')).toMatchObject({ generation: 1, isHealthy: true })
  // It reads well, and cannot be bound to.
  const taken = document(3, { haproxy: { config: proxy('x').replace(`:${PORT}`, '192.0.2.77:80'), certificates: {} } })
  expect(await machine.apply(taken)).toMatchObject({
    generation: 1,
    detail: expect.stringContaining('generation 3 does not run'),
  })
  expect(await page()).toBe('generation-1')
  expect(await machine.apply(document(4))).toMatchObject({ generation: 4, isHealthy: true })
  expect(await page()).toBe('generation-4')
})

it('takes nothing of another machine and nothing old, and comes back after a boot', async () => {
  await machine.apply(document(5))
  expect(await machine.apply({ ...document(6), machine: 'm2' })).toMatchObject({
    machine: 'm1',
    generation: 5,
    detail: expect.stringContaining('of machine m2'),
  })
  expect(await machine.apply(document(4))).toMatchObject({ generation: 5, detail: expect.stringContaining('older') })
  expect(await machine.ask('stop')).toMatchObject({ isHealthy: false })
  expect(await machine.ask('start')).toMatchObject({ generation: 5, isHealthy: true })
  expect(await page()).toBe('generation-5')
})

it('loses no request while the configuration changes', async () => {
  await machine.apply(document(1))
  const requests = machine.run(
    PYTHON,
    '-c',
    [
      'import time, urllib.request',
      'end = time.time() + 6',
      'done = failed = 0',
      'while time.time() < end:',
      '    try:',
      `        urllib.request.urlopen("http://127.0.0.1:${PORT}/", timeout=5).read()`,
      '        done += 1',
      '    except OSError:',
      '        failed += 1',
      'print(done > 0, failed)',
    ].join('\n'),
  )
  for (let generation = 2; generation <= 6; generation++)
    expect(await machine.apply(document(generation))).toMatchObject({ generation, isHealthy: true })
  expect((await requests).trim()).toBe('True 0')
})
