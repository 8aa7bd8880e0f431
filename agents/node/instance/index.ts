/** The reconciler of Instances: reads the host, and carries out what the plan decides. */
import { keyOf } from '../../../kit/kube/object.ts'
import { watch, type Reconciler } from '../../../kit/reconcile/reconciler.ts'
import {
  AGENT_FINALIZER,
  Instance,
  Volume,
  type InstanceSpec,
  type InstanceStatus,
} from '../../../resources/instance/index.ts'
import { instanceEffects } from './effects.ts'
import { imageOf, type InstanceOptions, isUsable, volumesOf } from './guest-definition.ts'
import { type ObservedInstance, planInstance } from './plan.ts'

const VOLUME_INDEX = 'volume'

export function instanceReconciler(
  options: InstanceOptions,
): Reconciler<InstanceSpec, InstanceStatus, ObservedInstance> {
  const { caches, hypervisor, images, ledger, namespace } = options
  const instances = caches.of(Instance)
  instances.addIndex(VOLUME_INDEX, ({ spec }) => volumesOf(spec))
  return {
    name: 'instance',
    type: Instance,
    finalizer: AGENT_FINALIZER,
    watches: [watch(Volume, ({ metadata }) => instances.by(VOLUME_INDEX, metadata.name).map(keyOf))],
    wakes(wake) {
      const stops = [
        hypervisor.onChange((name) => wake({ namespace, name })),
        images.onChange(() => instances.list().forEach((instance) => wake(keyOf(instance)))),
      ]
      return () => stops.forEach((stop) => stop())
    },
    async observe({ metadata: { name }, spec }) {
      const held = await Promise.all(
        volumesOf(spec).map(async (volume) => ({ volume, isHere: await isUsable(options, volume) })),
      )
      return {
        guest: await hypervisor.inspect(name),
        entry: ledger.get(name),
        hypervisor: hypervisor.kind,
        missingVolumes: held.filter(({ isHere }) => !isHere).map(({ volume }) => volume),
        image: await imageOf(options, spec),
      }
    },
    plan: planInstance,
    // the plan names each with its own input
    effects: instanceEffects(options) as unknown as NonNullable<Reconciler<InstanceSpec, InstanceStatus>['effects']>,
  }
}
