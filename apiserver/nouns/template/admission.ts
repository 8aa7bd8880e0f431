/** Templates that operators create, change and delete with kubectl. Their own schema validates their fields. */
import { requireDiskSize } from '../../../domain/storage/rules.ts'
import { Template, type TemplateSpec, type TemplateStatus } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import type { AdmissionRules } from '../../kit/admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'
import { requireIdle } from './rules.ts'

const PLATFORM: PlatformFields = {
  noun: 'template',
  finalizer: finalizerOf(Template),
  goesWhen: 'no node holds what was fetched for it',
}

export const templateAdmission: AdmissionRules<TemplateSpec, TemplateStatus> = {
  create(_parts, template) {
    denyPlatformFields(template, undefined, PLATFORM)
    requireDiskSize(template.spec.minStorageGibibytes, 'spec.minStorageGibibytes')
    return []
  },
  update(_parts, template, before) {
    denyPlatformFields(template, before, PLATFORM)
    if (template.spec.minStorageGibibytes !== before.spec.minStorageGibibytes)
      requireDiskSize(template.spec.minStorageGibibytes, 'spec.minStorageGibibytes')
    return []
  },
  delete(_parts, template) {
    if (template.metadata.deletionTimestamp === undefined) requireIdle(template)
    return []
  },
  reads: [Template],
}
