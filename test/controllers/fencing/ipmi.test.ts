/** IPMI as fencing speaks it, with a program in the place of ipmitool that plays a controller: it holds the power in a
 *  file, wants the password in the environment and writes down its arguments. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openIpmi } from '../../../controllers/fencing/ipmi.ts'
import { PowerControlFailed } from '../../../controllers/fencing/power-control.ts'

const PROGRAM = `#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >> log
[ "$IPMI_PASSWORD" = 'the secret' ] || { echo 'Error: Unable to establish IPMI v2 / RMCP+ session' >&2; exit 1; }
for last; do :; done
case "$last" in
  status) echo "Chassis Power is $(cat power)" ;;
  off) [ "$(cat power)" = on ] || {
         echo 'Set Chassis Power Control to Down/Off failed: Command not supported in present state' >&2
         exit 1
       }
       [ -e stuck ] || echo off > power; echo 'Chassis Power Control: Down/Off' ;;
esac
`
let folder: string
let program: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ipmi-'))
  program = join(folder, 'ipmitool')
  await writeFile(program, PROGRAM)
  await chmod(program, 0o755)
  await writeFile(join(folder, 'power'), 'on\n')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const open = (address = '192.0.2.7', password = 'the secret') =>
  openIpmi({ address, username: 'fence', password, program })
const log = () => readFile(join(folder, 'log'), 'utf8')

describe('a BMC that speaks IPMI', () => {
  it('says whether the host has power, and cuts it', async () => {
    expect(await open().powerState()).toBe('on')
    await open().powerOff()
    expect(await open().powerState()).toBe('off')
  })

  it('may refuse to cut what is cut', async () => {
    await writeFile(join(folder, 'power'), 'off\n')
    await open().powerOff()
  })

  it('proves nothing by words that are not known', async () => {
    for (const word of ['on', 'unknown', '', 'offline']) {
      await writeFile(join(folder, 'power'), word)
      expect(await open().powerState()).toBe('on')
    }
  })

  it('learns the password by the environment, which nobody else reads', async () => {
    await open('[2001:db8::7]:6230').powerState()
    expect(await log()).toContain('-H 2001:db8::7 -p 6230 -U fence -E chassis power status')
    expect(await log()).not.toContain('secret')
  })

  it('that admits nobody proves nothing', async () => {
    await expect(open('192.0.2.7', 'wrong').powerState()).rejects.toThrow('Unable to establish')
    await expect(open('192.0.2.7', 'wrong').powerOff()).rejects.toThrow(PowerControlFailed)
  })

  it('needs the program', async () => {
    await expect(
      openIpmi({
        address: '192.0.2.7',
        username: 'fence',
        password: '',
        program: join(folder, 'missing'),
      }).powerState(),
    ).rejects.toThrow('is not installed')
  })

  it('is no argument of the program by its address', () => {
    for (const address of ['-f/etc/passwd', 'host name', 'host:port', '[host]', '', 'a;b'])
      expect(() => open(address)).toThrow(PowerControlFailed)
  })
})
