/** The effect `power` of a node: asks its management controller and writes down what it says. A controller that does not answer is news
 *  too, not an error: the rules of fencing go on to another way. */
import { Secret } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Effect } from '../../kit/reconcile/reconciler.ts'
import { SYSTEM_NAMESPACE } from '../../resources/labels.ts'
import type { NodePower, NodeSpec, NodeStatus } from '../../resources/platform.ts'
import { openIpmi } from './ipmi.ts'
import { type Login, type PowerControl, PowerControlFailed, type PowerState } from './power-control.ts'
import { openRedfish } from './redfish.ts'

export type Bmc = NonNullable<NodeSpec['bmc']>

/** Opens the way to the controller of a host. */
export type OpenPowerControl = (bmc: Bmc) => Promise<PowerControl>

const DETAIL_LENGTH_MAXIMUM = 1_024

/** With the credentials that the Secret of the platform's own namespace holds now. The answer throws PowerControlFailed when it lacks them. */
export const powerControlWith = ({ store, clock }: { readonly store: Store; readonly clock: Clock }): OpenPowerControl => async ({ address, protocol, secretName }) => {
  const login = await readLogin(store, secretName)
  return protocol === 'redfish' ? openRedfish({ address, ...login, clock }) : openIpmi({ address, ...login })
}

async function readLogin(store: Store, secretName: string): Promise<Login> {
  const data = (await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: secretName }))?.data
  const text = (key: string) => (data?.[key] === undefined ? undefined : Buffer.from(data[key], 'base64').toString('utf8').trim())
  const [username, password] = [text('username'), text('password')]
  if (username === undefined || password === undefined) throw new PowerControlFailed(`There is no Secret ${secretName} with username and password in the namespace ${SYSTEM_NAMESPACE}.`)
  return { username, password, certificateFingerprint: text('certificateFingerprint')?.replaceAll(':', '').toLowerCase(), authority: text('ca.crt') }
}

/** Input `{ask: 'state' | 'off'}`. Answers `status.power`. */
export const powerEffect = (open: OpenPowerControl, clock: Clock): Effect<NodeSpec, NodeStatus> => async (input, { spec, status }) => {
  if (spec.bmc === undefined) return undefined
  const isCut = input['ask'] === 'off'
  const before = status?.power
  try {
    const control = await open(spec.bmc)
    if (isCut) await control.powerOff()
    return { status: { power: afterReading(before, await control.powerState(), { now: clock.now(), isCut }) } }
  } catch (error) {
    if (!(error instanceof PowerControlFailed)) throw error
    return { status: { power: afterFailure(before, error.message, { now: clock.now(), isCut }) } }
  }
}

interface Reading {
  readonly now: Date
  readonly isCut: boolean
}

function afterReading(before: NodePower | undefined, state: PowerState, { now, isCut }: Reading): NodePower {
  const at = now.toISOString()
  return { state, since: before?.state === state ? before.since : at, readAt: at, failures: 0, cuts: (before?.cuts ?? 0) + Number(isCut), detail: '' }
}

function afterFailure(before: NodePower | undefined, detail: string, { now, isCut }: Reading): NodePower {
  const at = now.toISOString()
  return {
    state: 'unknown', since: before?.state === 'unknown' ? before.since : at, readAt: at, failures: (before?.failures ?? 0) + 1, cuts: (before?.cuts ?? 0) + Number(isCut), detail: detail.slice(0, DETAIL_LENGTH_MAXIMUM),
  }
}
