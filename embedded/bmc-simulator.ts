/** A management controller (BMC) for the nodes of an embedded cloud, whose machines have none. It implements the power
 *  functions of Redfish (DMTF DSP0266: service root, Systems, ComputerSystem and its Reset). The caller defines what
 *  switches such a machine on and off. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { textWithin } from '../kit/http/bounded.ts'
import { closeNow, listen } from '../kit/sys/listen.ts'

export interface SimulatedMachine {
  readonly name: string
  isOn(): boolean
  /** Resolves when the machine has begun to start; does nothing when it is on. */
  powerOn(): Promise<void>
  /** Resolves when nothing of the machine runs; does nothing when it is off. */
  powerOff(): Promise<void>
}

export interface BmcOptions {
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  /** PEM. */
  readonly certificate: string
  readonly key: string
  readonly username: string
  readonly password: string
  readonly machines: readonly SimulatedMachine[]
}

export interface BmcSimulator {
  readonly url: string
  readonly port: number
  stop(): Promise<void>
}

/** An answer: status and body. */
type Reply = readonly [number, object | undefined]

const ROOT = '/redfish/v1'
const BODY_BYTES_MAXIMUM = 65_536
const RESETS = ['On', 'ForceOff', 'ForceRestart'] as const

/** Resolves when it listens; rejects when the port is in use. */
export async function startBmcSimulator({
  host,
  port,
  certificate,
  key,
  username,
  password,
  machines,
}: BmcOptions): Promise<BmcSimulator> {
  const expected = digest(`Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`)
  const mayEnter = (authorization: string | undefined) => timingSafeEqual(expected, digest(authorization ?? ''))
  const server = createServer({ cert: certificate, key }, (request, response) => {
    answer(request, machines, mayEnter)
      .catch((error: unknown): Reply => [500, refusal(error instanceof Error ? error.message : String(error))])
      .then(([status, body]) => send(response, status, body))
      .catch(() => response.destroy())
  })
  const boundPort = await listen(server, { host, port })
  return {
    url: `https://${host}:${boundPort}`,
    port: boundPort,
    stop: () => closeNow(server),
  }
}

async function answer(
  request: IncomingMessage,
  machines: readonly SimulatedMachine[],
  mayEnter: (authorization: string | undefined) => boolean,
): Promise<Reply> {
  const path = (request.url ?? '/').replace(/\?.*$/, '').replace(/\/$/, '')
  if (path === '/redfish' || path === ROOT) return [200, root] // the only resource without authentication
  if (!mayEnter(request.headers.authorization))
    return [401, refusal('Sign in with the name and password of the controller.')]
  if (path === `${ROOT}/Systems`) return [200, systems(machines)]
  const [, name, action] = /^\/redfish\/v1\/Systems\/([^/]+)(\/Actions\/ComputerSystem\.Reset)?$/.exec(path) ?? []
  const machine = machines.find((one) => one.name === name)
  if (machine === undefined) return [404, refusal(`There is no ${path}.`)]
  if (action === undefined)
    return request.method === 'GET' ? [200, system(machine)] : [405, refusal('A system is only read.')]
  return request.method === 'POST'
    ? reset(machine, (await textWithin(request, BODY_BYTES_MAXIMUM)) ?? '')
    : [405, refusal('Reset is an action: POST it.')]
}

async function reset(machine: SimulatedMachine, body: string): Promise<Reply> {
  const type = resetTypeOf(body)
  switch (RESETS.find((known) => known === type)) {
    case 'On':
      await machine.powerOn()
      break
    case 'ForceOff':
      await machine.powerOff()
      break
    case 'ForceRestart':
      await machine.powerOff()
      await machine.powerOn()
      break
    case undefined:
      return [400, refusal(`ResetType is one of ${RESETS.join(', ')}.`)]
  }
  return [204, undefined]
}

function resetTypeOf(body: string): unknown {
  try {
    // JSON values other than objects have no member
    return (JSON.parse(body) as { readonly ResetType?: unknown } | null)?.ResetType
  } catch {
    return undefined
  }
}

const root = {
  '@odata.id': ROOT,
  '@odata.type': '#ServiceRoot.v1_15_0.ServiceRoot',
  Id: 'RootService',
  Name: 'BMC simulator of an embedded cloud',
  RedfishVersion: '1.15.0',
  Systems: { '@odata.id': `${ROOT}/Systems` },
}

const pathOf = ({ name }: SimulatedMachine): string => `${ROOT}/Systems/${name}`

const systems = (machines: readonly SimulatedMachine[]) => ({
  '@odata.id': `${ROOT}/Systems`,
  '@odata.type': '#ComputerSystemCollection.ComputerSystemCollection',
  Name: 'Computer systems',
  Members: machines.map((machine) => ({ '@odata.id': pathOf(machine) })),
  'Members@odata.count': machines.length,
})

const system = (machine: SimulatedMachine) => ({
  '@odata.id': pathOf(machine),
  '@odata.type': '#ComputerSystem.v1_20_0.ComputerSystem',
  Id: machine.name,
  Name: machine.name,
  SystemType: 'Virtual',
  PowerState: machine.isOn() ? 'On' : 'Off',
  Actions: {
    '#ComputerSystem.Reset': {
      target: `${pathOf(machine)}/Actions/ComputerSystem.Reset`,
      'ResetType@Redfish.AllowableValues': RESETS,
    },
  },
})

const refusal = (message: string) => ({ error: { code: 'Base.1.0.GeneralError', message } })

function send(response: ServerResponse, status: number, body: object | undefined): void {
  response.writeHead(status, {
    'odata-version': '4.0',
    'cache-control': 'no-store',
    ...(status === 401 ? { 'www-authenticate': 'Basic realm="bmc"' } : {}),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  })
  response.end(body === undefined ? undefined : JSON.stringify(body))
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
