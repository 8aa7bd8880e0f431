/** Prints what an agent on this host answers about OVN's controller. */
import { exposeOvnController } from '../../../../agents/node/drivers/network/ovn-controller.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { printLine } from '../../../../kit/sys/process.ts'

const registry = openRegistry({ isProcessWide: false })
exposeOvnController(registry)
printLine(await registry.metrics())
