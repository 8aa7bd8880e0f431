/** Secrets that an answer holds and that are shown once: a webhook's secret, new credentials. They are in the state of
 *  the dialog, and nowhere else. */
import type { ReactNode } from 'react'
import { utc } from '../texts/format.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Copy } from '../ui/copy.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Facts } from '../ui/layout.tsx'
import { labelOf } from './fields.tsx'
import type { Secrets } from './secrets.ts'

export interface OnceProps {
  readonly secrets: Secrets
  readonly onClose: () => void
}

export function Once({ secrets: { values, previousValidUntil }, onClose }: OnceProps): ReactNode {
  return (
    <Dialog title={t().once.title} onClose={onClose} isWide isFirm>
      <p>{t().once.note}</p>
      {previousValidUntil === undefined ? null : <p>{t().once.previous(utc(previousValidUntil))}</p>}
      <Facts
        facts={Object.entries(values).map(([name, value]) => ({ name: labelOf(name), value: <Copy text={value} /> }))}
      />
      <div className="dialog-end">
        <Button kind="primary" onPress={onClose}>
          {t().factor.kept}
        </Button>
      </div>
    </Dialog>
  )
}
