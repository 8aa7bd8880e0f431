/** IPMI with the real ipmitool, and at the other end a management controller that speaks RMCP+ for real: ipmi_sim,
 *  which holds the power of its host in a file. It does not answer which cipher suites it has, and ipmitool waits five
 *  seconds for that before it takes the usual one; all but the first connection say which one to take. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { openIpmi } from '../../../controllers/fencing/ipmi.ts'
import { PowerControlFailed } from '../../../controllers/fencing/power-control.ts'
import { endPeer } from './peer.ts'

const PASSWORD = 'correct-horse'
const CHASSIS = `#!/bin/sh
cd "$(dirname "$0")"
[ "$2 $3" = 'get power' ] && echo "power:$(cat power)"
[ "$2 $3" = 'set power' ] && echo "$4" > power
true
`
const CONTROLLER = `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
mc_enable 0x20
`
const configuration = (port: number) => `name "host"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 ${port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "${join(folder, 'chassis')} 0x20"
  user 2 true "fence" "${PASSWORD}" admin 10 none md2 md5 straight
`
const KNOWN_CIPHER_SUITE = `#!/bin/sh
exec ipmitool -C 3 "$@"
`
let folder: string
let address: string
let simulator: ChildProcess

async function freePort(): Promise<number> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  socket.close()
  return port
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ipmi-'))
  const port = await freePort()
  address = `127.0.0.1:${port}`
  await writeFile(join(folder, 'chassis'), CHASSIS)
  await chmod(join(folder, 'chassis'), 0o755)
  await writeFile(join(folder, 'ipmitool'), KNOWN_CIPHER_SUITE)
  await chmod(join(folder, 'ipmitool'), 0o755)
  await writeFile(join(folder, 'power'), '1\n')
  await writeFile(join(folder, 'lan.conf'), configuration(port))
  await writeFile(join(folder, 'controller'), CONTROLLER)
  await mkdir(join(folder, 'state'))
  simulator = spawn(
    'ipmi_sim',
    ['-c', join(folder, 'lan.conf'), '-f', join(folder, 'controller'), '-s', join(folder, 'state'), '-n'],
    { stdio: 'ignore' },
  )
  await vi.waitFor(() => openIpmi(login()).powerState(), { timeout: 60_000 })
})
afterAll(async () => {
  await endPeer(simulator)
  await rm(folder, { recursive: true, force: true })
})

const login = (password = PASSWORD) => ({ address, username: 'fence', password })
const open = (password?: string) => openIpmi({ ...login(password), program: join(folder, 'ipmitool') })

it('says whether the host has power, and cuts it, also what is cut', async () => {
  expect(await open().powerState()).toBe('on')
  await open().powerOff()
  expect(await readFile(join(folder, 'power'), 'utf8')).toBe('0\n')
  expect(await open().powerState()).toBe('off')
  await open().powerOff()
  expect(await open().powerState()).toBe('off')
})

it('proves nothing with a password that is not the right one', async () => {
  await expect(open('wrong').powerState()).rejects.toThrow(PowerControlFailed)
})

it('proves nothing when the controller does not answer', async () => {
  simulator.kill('SIGSTOP')
  try {
    await expect(open().powerState()).rejects.toThrow(PowerControlFailed)
  } finally {
    simulator.kill('SIGCONT')
  }
})
