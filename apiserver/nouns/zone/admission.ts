/** Zones that operators write with kubectl. Their own schema validates their fields. */
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Zone, type ZoneSpec, type ZoneStatus } from '../../../resources/catalog/index.ts'
import type { AdmissionRules } from '../../kit/admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'

const PLATFORM: PlatformFields = {
  noun: 'zone',
  finalizer: finalizerOf(Zone),
  goesWhen: 'nothing of the zone is left',
}

export const zoneAdmission: AdmissionRules<ZoneSpec, ZoneStatus> = {
  create(_parts, zone) {
    denyPlatformFields(zone, undefined, PLATFORM)
    return []
  },
  update(_parts, zone, before) {
    denyPlatformFields(zone, before, PLATFORM)
    return []
  },
  delete: () => [],
}
