/** The program in a real (pseudo) terminal, against the API behind a real socket: the console with a host that the test
 *  plays, the moving line of a wait, and completion in real shells. */
import { execFile } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { ConsoleLine } from '../../apiserver/console/console.ts'
import type { AgentConnections } from '../../apiserver/console/consoles.ts'
import { type Channel, createChannel } from '../../kit/http/channel.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Operation } from '../../resources/operation/index.ts'
import { Server } from '../../resources/server/index.ts'
import { PASSWORD, PUBLIC_KEY } from '../apiserver/cloud.ts'
import { endServerOperation } from '../apiserver/end-operation.ts'
import { useWorld } from './command-line.ts'
import { openTerminal, type PseudoTerminal } from './pseudo-terminal.ts'

/** The serial port of the only guest. */
const port = { written: '', shown: '', isOn: false, connections: new Set<Channel<ConsoleLine>>() }
const base64 = (text: string) => Buffer.from(text).toString('base64')
const agents: AgentConnections = {
  async *follow(_node, _instance, signal) {
    const lines: Channel<ConsoleLine> = createChannel({
      sizeMaximum: 1e6,
      sizeOf: () => 1,
      signal,
      onClosed: () => port.connections.delete(lines),
    })
    port.connections.add(lines)
    lines.push({ type: 'tail', data: base64(port.shown), log: 'a', end: port.shown.length })
    lines.push({ type: 'status', connected: true, running: port.isOn })
    yield* lines
  },
  async write(_node, _instance, bytes) {
    port.written += Buffer.from(bytes).toString()
    return 'written'
  },
}
/** What the guest writes. */
function print(text: string): void {
  port.shown += text
  const end = port.shown.length
  for (const lines of port.connections) lines.push({ type: 'output', data: base64(text), log: 'a', end })
}

const shared = useWorld({ agents })
let key: { readonly namespace: string }
let environment: Readonly<Record<string, string>>
let serverId: string

beforeAll(async () => {
  const { world } = shared
  key = { namespace: accountNamespace(world.owner.accountId) }
  await symlink(join(import.meta.dirname, '../../cli/svccloud.js'), join(world.folder, 'svccloud'))
  environment = {
    PATH: `${world.folder}${delimiter}${process.env['PATH']}`,
    HOME: world.folder,
    SVCCLOUD_URL: world.url,
    SVCCLOUD_TOKEN: await world.owner.token('read_write'),
  }
  await world.owner.send('POST', '/v1/ssh-keys', { body: { name: 'key', public_key: PUBLIC_KEY } })
  serverId = (
    await world.owner.send('POST', '/v1/servers', {
      body: { zone: world.cloud.zone, hostname: 'web', plan: 'tiny', template: 'tiny-linux' },
    })
  ).body['server'].id
})

const terminals: PseudoTerminal[] = []
function open(line: string): PseudoTerminal {
  const terminal = openTerminal(line, environment)
  terminals.push(terminal)
  return terminal
}
afterEach(() => {
  for (const terminal of terminals.splice(0)) terminal.close()
})

/** What host and controller would report of it. */
async function report(state: 'started' | 'stopped'): Promise<void> {
  port.isOn = state === 'started'
  for (const lines of port.connections) lines.push({ type: 'status', connected: true, running: port.isOn })
  const { cloud } = shared.world
  cloud.caches
    .of(Server)
    .apply(
      await cloud.admin.patch(
        Server,
        { ...key, name: serverId },
        { status: { state, nodeName: cloud.node } },
        'status',
      ),
    )
}

test('a password is not shown, however fast it is typed', async () => {
  const terminal = open('SVCCLOUD_TOKEN= svccloud login --email owner@example.com --profile typed')
  await terminal.see('Password: ')
  terminal.type(`${PASSWORD}\r`)
  await terminal.see('Logged in to')
  expect(await terminal.ended).toBe(0)
  expect(terminal.shown()).not.toContain(PASSWORD)
})

describe('the console', () => {
  test(
    'gives every key to the guest and every byte to the terminal, ' + 'comes back by itself, and leaves it as it was',
    async () => {
      await report('started')
      print('boot\r\n')
      const terminal = open(
        'stty -a | grep -ow -e -icanon -e icanon; svccloud console web; echo "left with $?"; stty -a | grep -ow -e ' +
          '-icanon -e icanon',
      )
      await terminal.see(/^icanon\r\n/m)
      await terminal.see('Connected. Press Ctrl-] to exit.')
      await terminal.see('boot')

      terminal.type('q') // one key is enough, and nothing but the guest shows it
      await expect.poll(() => port.written).toBe('q')
      terminal.type('\u0003\u001a\r\u001b[A') // interrupt, suspend, enter, an arrow: all of them are the guest's
      await expect.poll(() => port.written).toBe('q\u0003\u001a\r\u001b[A')
      expect(terminal.shown()).not.toMatch(/q|\^C|\^Z/)
      print('\u001b[31mred\u001b[0m')
      await terminal.see('\u001b[31mred\u001b[0m')

      await shared.world.interrupt()
      await expect.poll(() => port.connections.size).toBe(1)
      print('after the break\r\n')
      await terminal.see('after the break')
      expect(terminal.shown().match(/boot/g), 'what was shown is not shown again').toHaveLength(1)
      terminal.type('w')
      await expect.poll(() => port.written).toBe('q\u0003\u001a\r\u001b[Aw')

      terminal.type('\u001d')
      await terminal.see('left with 0\r\n')
      await terminal.see(/^icanon\r\n/m)
      expect(await terminal.ended).toBe(0)
      expect(port.written).toBe('q\u0003\u001a\r\u001b[Aw')
    },
  )

  test('reports that the server does not run, and continues when it does', async () => {
    await report('stopped')
    const terminal = open('svccloud console web')
    await terminal.see('[the server is stopped: server stopped]')
    terminal.type('x')
    await terminal.see('[not sent: 409 Conflict')
    await report('started')
    await expect.poll(() => port.connections.size).toBe(1)
    print('up again\r\n')
    await terminal.see('up again')
    terminal.type('\u001d')
    expect(await terminal.ended).toBe(0)
  })
})

describe('a wait', () => {
  const LINE = ['server', 'create', '--plan', 'tiny', '--template', 'tiny-linux', '--zone']
  const EVENT = { at: '2026-01-01T00:00:00Z', kind: 'started', message: 'Placed.' }

  /** Plays the controllers: the operation of the server gets its second step, then an event, then its end. */
  async function bringAbout(hostname: string, isShown: (step: string) => Promise<void>): Promise<void> {
    const { admin } = shared.world.cloud
    const idOf = async () =>
      (await admin.list(Server, key)).items.find(({ spec }) => spec.hostname === hostname)?.spec.operation?.id
    await expect.poll(idOf).toBeDefined()
    const operation = { ...key, name: (await idOf()) ?? '' }
    await expect
      .poll(() =>
        admin.get(Operation, operation).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true)
    const advance = (status: object) =>
      admin.patch(Operation, operation, { status: { error: '', events: [EVENT], ...status } }, 'status')
    await isShown('claimed')
    await advance({ status: 'running', step: 'storage', stepIndex: 1 })
    await isShown('storage')
    const end = { status: 'succeeded' as const, step: '', stepIndex: 4, error: '', events: [EVENT] }
    await endServerOperation(admin, operation, end)
  }

  test('is one moving line in a terminal, with the events above it', async () => {
    const terminal = open(`svccloud ${LINE.join(' ')} ${shared.world.cloud.zone} --hostname moving`)
    await bringAbout('moving', (step) =>
      terminal.see(
        new RegExp(
          `\\r\u001b\\[K(${EVENT.at}  server\\.create: Placed\\.\r\n\r\u001b\\[K)?server\\.create: \\w+, step ` +
            `\\d of 4 \\(${step}\\)`,
        ),
      ),
    )
    expect(await terminal.ended).toBe(0)
    const text = terminal.shown()
    expect(text.match(/Placed\./g)).toHaveLength(1)
    const above = text.slice(text.indexOf('\r\u001b[K'), text.indexOf('\u001b[1m'))
    expect(
      above.split('\r\n').map((line) => line.slice(line.lastIndexOf('\u001b[K') + 3)),
      'what stays when the line has moved',
    ).toEqual([`${EVENT.at}  server.create: Placed.`, ''])
    expect(text).toMatch(/hostname.* moving\r\n/)
  })

  test('is a plain line for each event where nobody watches', async () => {
    const made = promisify(execFile)('svccloud', [...LINE, shared.world.cloud.zone, '--hostname', 'plain'], {
      env: environment,
    })
    await bringAbout('plain', async () => undefined)
    const { stdout, stderr } = await made
    expect(stderr).toBe(`${EVENT.at}  server.create: Placed.\n`)
    expect(stdout).toMatch(/^hostname +plain$/m)
    expect(stdout + stderr).not.toContain('\u001b')
  })
})

const hasShell = (shell: string) =>
  promisify(execFile)(shell, ['-c', 'exit']).then(
    () => true,
    () => false,
  )
const SHELLS = [
  ['bash', 'bash --norc --noprofile -i', 'source <(svccloud completion bash)'],
  ['zsh', 'zsh -f -i', 'autoload -U compinit; compinit -u; source <(svccloud completion zsh)'],
  ['fish', 'fish --no-config --private -i', 'svccloud completion fish | source'],
] as const
const present = await Promise.all(SHELLS.map(async (row) => ({ row, isThere: await hasShell(row[0]) })))

describe('completion', () => {
  test.each(present.filter(({ isThere }) => isThere).map(({ row }) => row))(
    'works in an interactive %s',
    async (_shell, start, load) => {
      const terminal = open(start)
      terminal.type(`${load}; echo load''ed\r`)
      await terminal.see('loaded')
      terminal.type('svccloud ssh-key cre\t')
      await terminal.see('svccloud ssh-key create')
      terminal.type('--public-k\t')
      await terminal.see('--public-key')
    },
  )
})
