/** The process that serves S3 clients and the platform. `start.ts` starts it with descriptors: 3 for orders to the
 *  process with root's rights, 4 for the folder of all tenants, 5 for its own folder. It drops its rights when it has
 *  loaded all its code and has its port, and accepts no requests before that. */
import { systemClock } from '../../kit/sys/clock.ts'
import { openLog } from '../../kit/sys/log.ts'
import { becomeUser, exitProcess, inheritedSocket, isRoot, onFatal, takeEnvironment } from '../../kit/sys/process.ts'
import { SETTINGS_VARIABLE, settingsIn } from '../../kit/sys/settings.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { ObjectInterfaceSettings } from '../kit/process-settings.ts'
import { startInterface } from './interface.ts'
import { openOrders } from './order-client.ts'

const [ORDERS, TENANTS, OWN] = [3, 4, 5]
const settings = settingsIn(ObjectInterfaceSettings, takeEnvironment(SETTINGS_VARIABLE))
const log = openLog('object-storage-interface', settings.logLevel)
onFatal((error) => log.error('unexpected error', { error }))

const client = await openOrders(inheritedSocket(ORDERS), `/proc/self/fd/${TENANTS}`)
const { user } = client.beginning
const port = await startInterface({
  beginning: client.beginning,
  cells: client.cells,
  file: `/proc/self/fd/${OWN}/tenants.json`,
  listening() {
    if (user === null) return
    becomeUser(user, user)
    if (isRoot()) throw new Error('the process still has the rights of root')
  },
  clock: systemClock,
  random: systemRandom,
  log,
})
await client.ready(port)
await client.over
// The process that started the engines stops them.
exitProcess(0)
