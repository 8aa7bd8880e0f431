/** Flows that the userspace datapath of Open vSwitch has cached. Each is to become what the rules say when they change;
 *  where two overlap, Open vSwitch 3.1 changes the other one, and takes both for changed: what a rule forbids by now
 *  passes for as long as somebody sends it. So all of them go whenever OVN has installed something, and are made anew
 *  by the next packets. The kernel's datapath knows its flows by what identifies them and keeps them. */
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Logger } from '../../../../kit/sys/log.ts'
import { Outages } from '../../../../kit/sys/outages.ts'
import { ProgramFailed, runProgram } from '../../run-program.ts'
import { INTEGRATION_BRIDGE } from './ovn-guard.ts'

const USERSPACE = 'netdev'
/** Kept with the bridge by OVN's controller: the sequence that it has installed. */
const INSTALLED = 'external_ids:ovn-nb-cfg'
/** Kept by us: the one after which the flows went. */
const DROPPED_AFTER = 'external_ids:svccloud-flows-dropped'
/** For as long a change is waited for before it is looked at anew. */
const WAIT_MILLISECONDS = 600_000
const RETRY_MILLISECONDS = 2_000
const ANSWERS_WITHIN = '--timeout=10'

/** A column or a key of OVN's bridge; empty when it has none. ProgramFailed while Open vSwitch does not answer. */
export const ofBridge = async (column: string): Promise<string> =>
  (await runProgram('ovs-vsctl', [ANSWERS_WITHIN, '--if-exists', 'get', 'bridge', INTEGRATION_BRIDGE, column]))
    .trim()
    .replaceAll('"', '')

/** Makes Open vSwitch forget what it has cached after each change that OVN installs, until the signal aborts. Does
 *  nothing where the datapath is the kernel's. */
export async function keepFlowsFresh(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): Promise<void> {
  const outages = new Outages({ log, clock }, 'what the network has cached may be older than its rules')
  while (!signal.aborted)
    try {
      const installed = await dropAfterChange()
      await runProgram('ovs-vsctl', ['wait-until', 'bridge', INTEGRATION_BRIDGE, `${INSTALLED}!="${installed}"`], {
        signal,
        timeoutMilliseconds: WAIT_MILLISECONDS,
      })
      outages.over()
    } catch (error) {
      if (signal.aborted) return
      if (isWaitOver(error)) outages.over()
      else outages.failed(error)
      await clock.sleep(RETRY_MILLISECONDS, signal)
    }
}

const isWaitOver = (error: unknown): boolean =>
  error instanceof ProgramFailed && error.message.endsWith('took too long')

/** Answers the sequence that is installed; empty before there is one. */
async function dropAfterChange(): Promise<string> {
  const installed = await ofBridge(INSTALLED)
  const isUserspace = (await ofBridge('datapath_type')) === USERSPACE
  if (!isUserspace || installed === (await ofBridge(DROPPED_AFTER))) return installed
  await runProgram('ovs-appctl', ['revalidator/purge'])
  await runProgram('ovs-vsctl', ['set', 'bridge', INTEGRATION_BRIDGE, `${DROPPED_AFTER}="${installed}"`])
  return installed
}
