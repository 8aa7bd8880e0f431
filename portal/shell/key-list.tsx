/** The list of keys, and whether single keys are on. */
import { type ReactNode, useState } from 'react'
import { t } from '../texts/index.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Switch } from '../ui/field.tsx'
import { areKeysOn, type Place, setKeysOn } from './keys.ts'

export interface KeyListProps {
  readonly places: readonly Place[]
  readonly onClose: () => void
}

export function KeyList({ places, onClose }: KeyListProps): ReactNode {
  const [isOn, setOn] = useState(areKeysOn())
  const keys: readonly (readonly [string, string])[] = [
    ['Ctrl K', t().keys.palette],
    ['/', t().keys.palette],
    ['?', t().keys.help],
    ['c', t().keys.create],
    ['j k', t().keys.move],
    ['x', t().keys.select],
    ['e', t().keys.menu],
    ['f', t().keys.filter],
    ...places.map(({ letter, name }) => [`g ${letter}`, name] as const),
  ]
  return (
    <Dialog title={t().keys.title} onClose={onClose}>
      <dl className="key-list">
        {keys.map(([key, text]) => (
          <KeyLine key={key} name={key} text={text} />
        ))}
      </dl>
      <Switch
        label={t().keys.single}
        note={t().keys.singleNote}
        isOn={isOn}
        onChange={(next) => {
          setKeysOn(next)
          setOn(next)
        }}
      />
    </Dialog>
  )
}

const KeyLine = ({ name, text }: { readonly name: string; readonly text: string }): ReactNode => (
  <>
    <dt>
      <kbd>{name}</kbd>
    </dt>
    <dd>{text}</dd>
  </>
)
