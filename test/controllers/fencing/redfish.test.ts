/** Redfish as fencing speaks it, against the BMC simulator of the embedded cloud over TLS. */
import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type PowerControl, PowerControlFailed } from '../../../controllers/fencing/power-control.ts'
import { openRedfish, type RedfishOptions } from '../../../controllers/fencing/redfish.ts'
import { type BmcSimulator, type SimulatedMachine, startBmcSimulator } from '../../../embedded/bmc-simulator.ts'
import { openCertificates, type ServerCertificates } from '../../../embedded/kubernetes/server/certificates.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

/** A machine that is nothing but its power. */
class Switch implements SimulatedMachine {
  readonly name: string
  power = true
  readonly log: string[] = []
  constructor(name: string) {
    this.name = name
  }
  isOn(): boolean {
    return this.power
  }
  async powerOn(): Promise<void> {
    this.log.push('on')
    this.power = true
  }
  async powerOff(): Promise<void> {
    this.log.push('off')
    this.power = false
  }
}

const LOGIN = { username: 'fence', password: 'a secret: with a colon', clock: systemClock }
let folder: string
let certificates: ServerCertificates
let simulator: BmcSimulator
let machines: readonly [Switch, Switch]
const plain: Server[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bmc-'))
  certificates = await openCertificates({ folder, hosts: ['127.0.0.1'], clock: systemClock, random: systemRandom })
  machines = [new Switch('node-1'), new Switch('node-2')]
  simulator = await startBmcSimulator({
    ...LOGIN,
    host: '127.0.0.1',
    port: 0,
    certificate: certificates.certificate,
    key: certificates.key,
    machines,
  })
})
afterEach(async () => {
  await simulator.stop()
  for (const server of plain.splice(0)) await new Promise((resolve) => server.close(resolve))
  await rm(folder, { recursive: true, force: true })
})

const open = (options: Partial<RedfishOptions> = {}): PowerControl =>
  openRedfish({
    ...LOGIN,
    address: `${simulator.url}/redfish/v1/Systems/node-2`,
    authority: certificates.authority,
    ...options,
  })

/** A service of one's own making that answers everything with the body. */
async function service(
  answers: (path: string) => { readonly status?: number; readonly body: string },
): Promise<string> {
  const server = createServer((request, response) => {
    const { status = 200, body } = answers(request.url ?? '')
    response.writeHead(status).end(body)
  })
  plain.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('a BMC that speaks Redfish', () => {
  it('says whether its own system has power, and cuts that of no other', async () => {
    const power = open()
    expect(await power.powerState()).toBe('on')
    await power.powerOff()
    expect(await power.powerState()).toBe('off')
    expect(machines.map(({ power: isOn }) => isOn)).toEqual([true, false])
  })

  it('is not asked to cut power that is off already', async () => {
    machines[1].power = false
    await open().powerOff()
    expect(machines[1].log).toEqual([])
  })

  it('finds the system by itself where there is one, and asks for its name where there are more', async () => {
    await expect(open({ address: simulator.url }).powerState()).rejects.toThrow('speaks for 2 systems')
    const alone = await startBmcSimulator({
      ...LOGIN,
      host: '127.0.0.1',
      port: 0,
      certificate: certificates.certificate,
      key: certificates.key,
      machines: [machines[0]],
    })
    try {
      expect(await open({ address: alone.url }).powerState()).toBe('on')
    } finally {
      await alone.stop()
    }
  })

  it('is known by the fingerprint of its certificate, where nobody signed it', async () => {
    const certificateFingerprint = new X509Certificate(certificates.certificate).fingerprint256
      .replaceAll(':', '')
      .toLowerCase()
    expect(await open({ authority: undefined, certificateFingerprint }).powerState()).toBe('on')
    await expect(open({ authority: undefined, certificateFingerprint: '0'.repeat(64) }).powerState()).rejects.toThrow(
      'another certificate',
    )
  })

  it('is refused when its certificate is of an authority that nobody named', async () => {
    await expect(open({ authority: undefined }).powerState()).rejects.toThrow(PowerControlFailed)
  })

  it('admits nobody with a wrong password', async () => {
    await expect(open({ password: 'wrong' }).powerOff()).rejects.toThrow('with 401: Sign in')
    expect(machines[1].power).toBe(true)
  })

  it('that is missing proves nothing', async () => {
    await simulator.stop()
    await expect(open().powerState()).rejects.toThrow('cannot be reached')
  })

  it('proves nothing by any state but Off', async () => {
    for (const state of ['On', 'PoweringOff', 'PoweringOn', 'Paused', '']) {
      const address = await service(() => ({ body: JSON.stringify({ PowerState: state }) }))
      expect(await open({ address: `${address}/redfish/v1/Systems/1` }).powerState()).toBe('on')
    }
  })

  it('proves nothing by an answer that is not Redfish', async () => {
    for (const body of ['', 'off', '{}', '{"PowerState":null}', '[]']) {
      const address = await service(() => ({ body }))
      await expect(open({ address: `${address}/redfish/v1/Systems/1` }).powerState()).rejects.toThrow('not Redfish')
    }
  })

  it('says so when it cannot cut power', async () => {
    const resets = [
      undefined,
      { '#ComputerSystem.Reset': { target: '/reset', 'ResetType@Redfish.AllowableValues': ['GracefulShutdown'] } },
    ]
    for (const actions of resets) {
      const address = await service(() => ({ body: JSON.stringify({ PowerState: 'On', Actions: actions }) }))
      await expect(open({ address: `${address}/redfish/v1/Systems/1` }).powerOff()).rejects.toThrow('offer')
    }
  })

  it('never makes the password go to another host', async () => {
    const reachable: string[] = []
    const other = await service((path) => {
      reachable.push(path)
      return { body: '{"PowerState":"Off"}' }
    })
    const address = await service(() => ({
      body: JSON.stringify({ Members: [{ '@odata.id': `${other}/redfish/v1/Systems/1` }] }),
    }))
    await expect(open({ address }).powerState()).rejects.toThrow('refers to another host')
    expect(reachable).toEqual([])
  })

  it('is not spoken to in the clear across a network', () => {
    for (const address of ['http://192.0.2.1', 'ftp://127.0.0.1', 'not an address'])
      expect(() => open({ address })).toThrow(PowerControlFailed)
  })
})
