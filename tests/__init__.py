"""Tests by kind: unit, integration, acceptance, packaging, bench; vectors shared by all."""
