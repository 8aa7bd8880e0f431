/** Columns of `kubectl get` that several kinds have. */
import type { PrinterColumn } from './define.ts'

export const AGE: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }
export const READY: PrinterColumn = {
  name: 'Ready',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].status',
}
export const STATE: PrinterColumn = { name: 'State', type: 'string', jsonPath: '.status.state' }
/** The display name, beside the name of the object. */
export const TITLE: PrinterColumn = { name: 'Title', type: 'string', jsonPath: '.spec.name' }
export const ZONE: PrinterColumn = { name: 'Zone', type: 'string', jsonPath: '.spec.zone' }
