/** Purges the flows that the userspace datapath of Open vSwitch has cached. When rules change, each cached flow must
 *  change with them. But where two flows overlap, Open vSwitch 3.1 updates the wrong one and considers both updated. A
 *  connection that a rule forbids by now then passes as long as somebody sends on it. So all cached flows are deleted
 *  whenever OVN has installed a change, and the next packets create them again. The kernel's datapath identifies its
 *  flows exactly and keeps them. */
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Logger } from '../../../../kit/sys/log.ts'
import { Outages } from '../../../../kit/sys/outages.ts'
import { ProgramFailed, runProgram } from '../../run-program.ts'
import { INTEGRATION_BRIDGE } from './ovn-guard.ts'

const USERSPACE = 'netdev'
/** OVN's controller keeps this in the bridge: the sequence number that it has installed. */
const INSTALLED = 'external_ids:ovn-nb-cfg'
/** The agent keeps this in the bridge: the sequence number after which it deleted the flows. */
const DROPPED_AFTER = 'external_ids:svccloud-flows-dropped'
/** Maximum wait for a change before the bridge is read again. */
const WAIT_MILLISECONDS = 600_000
const RETRY_MILLISECONDS = 2_000
const ANSWERS_WITHIN = '--timeout=10'

/** A column or a key of OVN's bridge; empty when it has none. ProgramFailed while Open vSwitch does not answer. */
export const ofBridge = async (column: string): Promise<string> =>
  (await runProgram('ovs-vsctl', [ANSWERS_WITHIN, '--if-exists', 'get', 'bridge', INTEGRATION_BRIDGE, column]))
    .trim()
    .replaceAll('"', '')

/** Makes Open vSwitch delete its cached flows after each change that OVN installs, until the signal aborts. Does
 *  nothing when the datapath is the kernel's. */
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

/** Returns the installed sequence number; empty before there is one. */
async function dropAfterChange(): Promise<string> {
  const installed = await ofBridge(INSTALLED)
  const isUserspace = (await ofBridge('datapath_type')) === USERSPACE
  if (!isUserspace || installed === (await ofBridge(DROPPED_AFTER))) return installed
  await runProgram('ovs-appctl', ['revalidator/purge'])
  await runProgram('ovs-vsctl', ['set', 'bridge', INTEGRATION_BRIDGE, `${DROPPED_AFTER}="${installed}"`])
  return installed
}
