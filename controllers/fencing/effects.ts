/** The effects `power` and `storage` of a node: they ask its management controller, or its shared storage, and record
 *  the answer. No answer is a result too, not an error: the rules of fencing then try another way. */
import { Secret } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { SYSTEM_NAMESPACE } from '../../resources/kit/labels.ts'
import {
  Node,
  type NodePower,
  type NodeSpec,
  type NodeStatus,
  type NodeStorageBlock,
} from '../../resources/node/index.ts'
import type { EffectOn } from '../kit/effects.ts'
import { requireNewest } from '../kit/newest.ts'
import { openCeph } from './ceph.ts'
import { openIpmi } from './ipmi.ts'
import { type Login, type PowerControl, PowerControlFailed, type PowerState } from './power-control.ts'
import { openRedfish } from './redfish.ts'
import { type StorageAccess, StorageAccessFailed, type StorageLogin } from './storage-access.ts'

export type Bmc = NonNullable<NodeSpec['bmc']>

/** Opens power control of a host. */
export type OpenPowerControl = (bmc: Bmc) => Promise<PowerControl>

/** Opens access to the shared storage of a host. */
export type OpenStorageAccess = (access: NodeStorageBlock['access']) => Promise<StorageAccess>

const DETAIL_LENGTH_MAXIMUM = 1_024

/** Uses the credentials that the Secret in the platform's own namespace holds now. The opened control throws
 *  PowerControlFailed when the Secret lacks them. */
export const powerControlWith =
  ({ store, clock }: { readonly store: Store; readonly clock: Clock }): OpenPowerControl =>
  async ({ address, protocol, secretName }) => {
    const login = await readLogin(store, secretName)
    return protocol === 'redfish' ? openRedfish({ address, ...login, clock }) : openIpmi({ address, ...login })
  }

/** Uses the key that the Secret in the platform's own namespace holds now. The opened access throws StorageAccessFailed
 *  when the Secret lacks it. */
export const storageAccessWith =
  ({ store, clock }: { readonly store: Store; readonly clock: Clock }): OpenStorageAccess =>
  async ({ addresses, secretName }) =>
    openCeph({ addresses, ...(await readStorageLogin(store, secretName)), clock })

async function readTexts(store: Store, secretName: string): Promise<(key: string) => string | undefined> {
  const data = (await store.get(Secret, { namespace: SYSTEM_NAMESPACE, name: secretName }))?.data
  return (key) => (data?.[key] === undefined ? undefined : Buffer.from(data[key], 'base64').toString('utf8').trim())
}

/** Throws StorageAccessFailed when the Secret lacks one of the three. */
export async function readStorageLogin(store: Store, secretName: string): Promise<StorageLogin> {
  const text = await readTexts(store, secretName)
  const [monitors, username, key] = [text('monitors'), text('username'), text('key')]
  if (monitors === undefined || username === undefined || key === undefined)
    throw new StorageAccessFailed(
      `There is no Secret ${secretName} with monitors, username and key in the namespace ${SYSTEM_NAMESPACE}.`,
    )
  return { monitors, username, key }
}

async function readLogin(store: Store, secretName: string): Promise<Login> {
  const text = await readTexts(store, secretName)
  const [username, password] = [text('username'), text('password')]
  if (username === undefined || password === undefined)
    throw new PowerControlFailed(
      `There is no Secret ${secretName} with username and password in the namespace ${SYSTEM_NAMESPACE}.`,
    )
  return {
    username,
    password,
    certificateFingerprint: text('certificateFingerprint')?.replaceAll(':', '').toLowerCase(),
    authority: text('ca.crt'),
  }
}

/** Input `{ask: 'state' | 'off'}`. Answers `status.power`. */
export const powerEffect =
  (open: OpenPowerControl, clock: Clock): EffectOn<{ readonly ask: 'state' | 'off' }, NodeSpec, NodeStatus> =>
  async ({ ask }, { spec, status }) => {
    if (spec.bmc === undefined) return undefined
    const isCut = ask === 'off'
    const before = status?.power
    try {
      const control = await open(spec.bmc)
      if (isCut) await control.powerOff()
      return {
        isReading: true,
        status: { power: afterReading(before, await control.powerState(), { now: clock.now(), isCut }) },
      }
    } catch (error) {
      if (!(error instanceof PowerControlFailed)) throw error
      return { isReading: true, status: { power: afterFailure(before, error.message, { now: clock.now(), isCut }) } }
    }
  }

interface Reading {
  readonly now: Date
  readonly isCut: boolean
}

function afterReading(before: NodePower | undefined, state: PowerState, { now, isCut }: Reading): NodePower {
  const at = now.toISOString()
  return {
    state,
    since: before?.state === state ? before.since : at,
    readAt: at,
    failures: 0,
    cuts: (before?.cuts ?? 0) + Number(isCut),
    detail: '',
  }
}

function afterFailure(before: NodePower | undefined, detail: string, { now, isCut }: Reading): NodePower {
  const at = now.toISOString()
  return {
    state: 'unknown',
    since: before?.state === 'unknown' ? before.since : at,
    readAt: at,
    failures: (before?.failures ?? 0) + 1,
    cuts: (before?.cuts ?? 0) + Number(isCut),
    detail: detail.slice(0, DETAIL_LENGTH_MAXIMUM),
  }
}

/** Input `{ask: 'take' | 'give'}`. Answers `status.storageBlock`. A controller that has lost its lease must not undo
 *  what the next one does. */
export const storageEffect =
  (
    open: OpenStorageAccess,
    { store, clock }: { readonly store: Store; readonly clock: Clock },
  ): EffectOn<{ readonly ask: 'take' | 'give' }, NodeSpec, NodeStatus> =>
  async ({ ask }, node) => {
    const block = node.status?.storageBlock
    if (block === undefined) return undefined
    await requireNewest(store, Node, node)
    try {
      const access = await open(block.access)
      if (ask === 'give') {
        await access.giveBack()
        return { status: { storageBlock: undefined } }
      }
      await access.take()
      return {
        isReading: true,
        status: {
          storageBlock: { ...block, isTaken: true, readAt: clock.now().toISOString(), failures: 0, detail: '' },
        },
      }
    } catch (error) {
      if (!(error instanceof StorageAccessFailed)) throw error
      return {
        isReading: true,
        status: {
          storageBlock: {
            ...block,
            readAt: clock.now().toISOString(),
            failures: block.failures + 1,
            detail: error.message.slice(0, DETAIL_LENGTH_MAXIMUM),
          },
        },
      }
    }
  }
