/** What the agent does for the network of the host where it is started. Arguments: `join`, a device and the port of OVN
 *  that it is joined to; or `keep`, which keeps the guard of guests, or `fresh`, which keeps cached flows fresh: both
 *  end with their input. */
import { keepFlowsFresh } from '../../../../agents/node/drivers/network/cached-flows.ts'
import { joinGuarded, keepGuard } from '../../../../agents/node/drivers/network/ovn-guard.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'

const [what = '', device = '', port = ''] = process.argv.slice(2)
if (what === 'join') await joinGuarded(device, port)
else {
  const ending = new AbortController()
  process.stdin.resume().once('end', () => ending.abort())
  await (what === 'fresh' ? keepFlowsFresh : keepGuard)({ clock, log }, ending.signal)
}
