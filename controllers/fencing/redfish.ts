/** Power control by Redfish (DMTF DSP0266), as far as fencing needs it: PowerState of one ComputerSystem, and its
 *  action Reset with ForceOff. Every request carries the credentials, so that no session is left at the controller. */
import { request as sendPlain, type ClientRequest, type IncomingMessage } from 'node:http'
import { request as sendSecure } from 'node:https'
import { TLSSocket } from 'node:tls'
import { z } from 'zod'
import { defined } from '../../domain/defined.ts'
import { LOOPBACK_HOSTS } from '../../kit/http/loopback.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { type Login, type PowerControl, PowerControlFailed } from './power-control.ts'

export interface RedfishOptions extends Login {
  /** `https://host[:port]`, with the path of the system (`/redfish/v1/Systems/1`) where the service has more than one.
   *  Plain `http:` only on loopback. */
  readonly address: string
  readonly clock: Clock
}

const SYSTEMS_PATH = '/redfish/v1/Systems'
const ANSWER_MILLISECONDS_MAXIMUM = 10_000
const ANSWER_BYTES_MAXIMUM = 1_048_576

const Link = z.looseObject({ '@odata.id': z.string() })
const Systems = z.looseObject({ Members: z.array(Link) })
const System = z.looseObject({
  PowerState: z.string(),
  Actions: z
    .looseObject({
      '#ComputerSystem.Reset': z
        .looseObject({ target: z.string(), 'ResetType@Redfish.AllowableValues': z.array(z.string()).optional() })
        .optional(),
    })
    .optional(),
})
const Refusal = z.looseObject({ error: z.looseObject({ message: z.string() }) })

/** Throws PowerControlFailed when the address cannot be used. */
export function openRedfish(options: RedfishOptions): PowerControl {
  const base = baseOf(options.address)
  const ask = (method: 'GET' | 'POST', path: string, body?: object) =>
    exchange(method, within(base, path), options, body)

  async function systemPath(): Promise<string> {
    if (base.pathname !== '/') return base.pathname
    const { Members: members } = parse(Systems, await ask('GET', SYSTEMS_PATH))
    const [only] = members
    if (only === undefined || members.length > 1)
      throw new PowerControlFailed(
        `The BMC speaks for ${members.length} systems: name the one of this node in its address.`,
      )
    return only['@odata.id']
  }

  const system = async () => parse(System, await ask('GET', await systemPath()))

  return {
    async powerState() {
      return (await system()).PowerState === 'Off' ? 'off' : 'on'
    },
    async powerOff() {
      const { PowerState: state, Actions: actions } = await system()
      if (state === 'Off') return
      const reset = actions?.['#ComputerSystem.Reset']
      if (reset === undefined) throw new PowerControlFailed('The BMC offers no reset of its system.')
      const allowed = reset['ResetType@Redfish.AllowableValues']
      if (allowed !== undefined && !allowed.includes('ForceOff'))
        throw new PowerControlFailed('The BMC does not offer to cut the power (ForceOff).')
      await ask('POST', reset.target, { ResetType: 'ForceOff' })
    },
  }
}

function baseOf(address: string): URL {
  const base = URL.parse(address)
  if (base === null) throw new PowerControlFailed(`${address} is not the address of a BMC.`)
  if (base.protocol !== 'https:' && !(base.protocol === 'http:' && LOOPBACK_HOSTS.includes(base.hostname)))
    throw new PowerControlFailed('A BMC is spoken to by https only.')
  return base
}

/** The controller names paths; the password is sent to no other host, whatever it names. */
function within(base: URL, path: string): URL {
  const url = new URL(path, base)
  if (url.origin !== base.origin) throw new PowerControlFailed('The BMC refers to another host.')
  return url
}

function parse<Shape extends z.ZodType>(shape: Shape, text: string): z.infer<Shape> {
  try {
    return shape.parse(JSON.parse(text))
  } catch (error) {
    throw new PowerControlFailed('The BMC answers with something that is not Redfish.', { cause: error })
  }
}

/** The body of the response. Throws PowerControlFailed for anything but success. */
async function exchange(
  method: string,
  url: URL,
  { username, password, clock, ...trust }: RedfishOptions,
  body?: object,
): Promise<string> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const headers = {
    accept: 'application/json',
    'odata-version': '4.0',
    authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  }
  const giveUp = new AbortController()
  const cancel = clock.after(ANSWER_MILLISECONDS_MAXIMUM, () => giveUp.abort())
  try {
    const options = { method, headers, agent: false as const, signal: giveUp.signal }
    const { status, answer } =
      url.protocol === 'http:'
        ? await finish(sendPlain(url, options), text)
        : await finish(
            sendSecure(url, {
              ...options,
              ...defined({ ca: trust.authority }),
              rejectUnauthorized: trust.certificateFingerprint === undefined,
            }),
            text,
            trust.certificateFingerprint,
          )
    if (status >= 200 && status < 300) return answer
    throw new PowerControlFailed(`The BMC answers ${method} with ${status}${wordsOf(answer)}.`)
  } catch (error) {
    if (error instanceof PowerControlFailed) throw error
    throw new PowerControlFailed(
      giveUp.signal.aborted
        ? 'The BMC did not answer in time.'
        : `The BMC cannot be reached: ${error instanceof Error ? error.message : String(error)}.`,
      { cause: error },
    )
  } finally {
    cancel()
  }
}

/** Sends the request, and reads the response to its end. With a fingerprint, nothing is sent before the certificate has
 *  been verified. */
function finish(
  request: ClientRequest,
  text: string,
  fingerprint?: string,
): Promise<{ readonly status: number; readonly answer: string }> {
  return new Promise((resolve, reject) => {
    request.once('error', reject)
    request.once('response', (response) => {
      readAll(response).then((answer) => resolve({ status: response.statusCode ?? 0, answer }), reject)
    })
    if (fingerprint === undefined) return void request.end(text)
    request.once('socket', (socket) => {
      socket.once('secureConnect', () => {
        const shown = socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.fingerprint256 : undefined
        if (shown?.replaceAll(':', '').toLowerCase() === fingerprint) return void request.end(text)
        request.destroy(new PowerControlFailed('The BMC shows another certificate than the one that is known of it.'))
      })
    })
  })
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  // A response without an encoding yields bytes.
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > ANSWER_BYTES_MAXIMUM) throw new PowerControlFailed('The BMC answers with more than can be read.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const WORDS_LENGTH_MAXIMUM = 200

/** The controller's message about a refusal, when it has one. */
function wordsOf(answer: string): string {
  try {
    return `: ${Refusal.parse(JSON.parse(answer)).error.message.slice(0, WORDS_LENGTH_MAXIMUM).replace(/\.$/, '')}`
  } catch {
    return ''
  }
}
