/** What the public view of a server says, of what is stored and of its surroundings. */
import { expect, test } from 'vitest'
import { Server, type StoredServer, toServerView } from '../../../resources/server/index.ts'
import type { ServerStatus } from '../../../resources/server/index.ts'
import { TINY_LINUX } from '../../catalog.ts'

const server = (system: object, status: Partial<ServerStatus>): StoredServer => ({
  name: 's',
  createdAt: '2026-01-01T00:00:00Z',
  isDeleting: false,
  spec: Server.spec.parse({ hostname: 'web', zone: 'z', plan: 'tiny', sshKeys: [], ...system }),
  status: { state: 'started', publicIpv4: '203.0.113.2', ...status },
})
const nothing = { plan: undefined, zone: undefined, template: undefined, haObstacle: undefined, work: undefined }
const commandOf = (system: object, status: Partial<ServerStatus>, surroundings = {}): string | null =>
  toServerView(server(system, status), { ...nothing, ...surroundings }).ssh_command

test('the command to sign in names the user of the template, also when that is deleted', () => {
  const template = { ...TINY_LINUX, defaultUser: 'debian' }
  expect(commandOf({ template: 't' }, {}, { template })).toBe('ssh debian@203.0.113.2')
  expect(commandOf({ template: 't' }, { sshUser: 'debian' })).toBe('ssh debian@203.0.113.2')
  expect(commandOf({ template: 't' }, {})).toBeNull()
  expect(commandOf({ customImageId: 'i' }, { sshUser: 'debian' })).toBe('ssh debian@203.0.113.2')
  expect(commandOf({ customImageId: 'i' }, {})).toBe('ssh root@203.0.113.2')
})

test('a server from a custom image names it, besides under template, where the contract has it', () => {
  const shown = (system: object) => toServerView(server(system, {}), nothing)
  expect(shown({ customImageId: 'i' })).toMatchObject({ custom_image_id: 'i', template: 'i' })
  expect(shown({ template: 't' })).toMatchObject({ custom_image_id: null, template: 't' })
})

test('the command to sign in uses the twin of an address where the machine has one', () => {
  const proxy = { publicNetwork: { proxy: 'socks5://127.0.0.1:1080' } }
  const status = { publicIpv4: '198.18.0.9', sshUser: 'root' }
  const twins = (sshPort: number) => ({ servers: '198.18', loopback: '127.19', sshPort })
  const command = (surroundings: object, more: Partial<ServerStatus> = {}) =>
    commandOf({}, { ...status, ...more }, { zone: proxy, ...surroundings })
  const byProxy = "ssh -o 'ProxyCommand=nc -X 5 -x 127.0.0.1:1080 %h %p' root@"
  expect(command({})).toBe(`${byProxy}198.18.0.9`)
  expect(command({ loopbackTwins: twins(22) })).toBe('ssh root@127.19.0.9')
  expect(command({ loopbackTwins: twins(10_022) })).toBe('ssh -p 10022 root@127.19.0.9')
  expect(command({ loopbackTwins: twins(22) }, { publicIpv4: '203.0.113.2' })).toBe(`${byProxy}203.0.113.2`)
})
