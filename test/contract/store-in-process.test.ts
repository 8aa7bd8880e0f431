import { ADMIN, openCore } from '../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../embedded/kubernetes/storage/memory.ts'
import { openClient } from '../../kit/kube/client.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { storeContract } from './store.ts'

storeContract('the embedded API in process', async () => {
  const core = await openCore({ clock: systemClock, random: systemRandom, log: silentLog, storage: memoryStorage() })
  const store = openClient({
    transport: (request) => core.handle(request, ADMIN),
    fieldManager: 'contract',
    clock: systemClock,
    random: systemRandom,
  })
  return { store, close: () => core.close() }
})
